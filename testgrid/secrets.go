package testgrid

import (
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
)

// 'run' takes secrets out of all that it writes. Who else wrote into a results
// folder may not have, so it is done once more before anything is sent; what
// 'run' wrote stays as it is.

// isJSON reports whether a file's name says that it holds JSON values.
func isJSON(name string) bool { return path.Ext(name) == ".json" || path.Ext(name) == ".jsonl" }

// masking yields what mask makes of source. The caller closes what it returns,
// and with that source.
func masking(source io.ReadCloser, mask func(io.Writer, io.Reader) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		defer source.Close()
		w.CloseWithError(mask(w, source))
	}()
	return r
}

// maskText masks line by line.
func maskText(w io.Writer, r io.Reader) error {
	clean := redact.NewWriter(w)
	_, err := io.Copy(clean, r)
	return errors.Join(err, clean.Close())
}

// maskJSON writes JSON values, one per line, with masks in place of secrets.
func maskJSON(w io.Writer, r io.Reader) error {
	_, err := maskValues(w, r)
	return err
}

// maskValues also reports whether there was a secret.
func maskValues(w io.Writer, r io.Reader) (found bool, err error) {
	d, e := json.NewDecoder(r), json.NewEncoder(w)
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return found, err
		}
		if err := e.Encode(maskValue("", v, &found)); err != nil {
			return found, err
		}
	}
}

// maskValue masks strings in the value of a field.
func maskValue(field string, v any, found *bool) any {
	switch v := v.(type) {
	case string:
		clean := redact.String(v)
		if clean == v {
			// Some values are secrets because of what they are called.
			const open, end = `": "`, `"`
			pair := `"` + field + open + v + end
			if strings.HasPrefix(redact.String(pair), `"`+field+open+redact.Mask) {
				clean = redact.Mask
			}
		}
		*found = *found || clean != v
		return clean
	case []any:
		for i := range v {
			v[i] = maskValue(field, v[i], found)
		}
	case map[string]any:
		for k := range v {
			v[k] = maskValue(k, v[k], found)
		}
	}
	return v
}
