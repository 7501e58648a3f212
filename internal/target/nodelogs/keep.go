package nodelogs

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// keep writes a file of what get writes, and says what is missing of it. Where
// there is nothing, no file is made, and the error says why.
func (c *collector) keep(ctx context.Context, name string, get func(context.Context, io.Writer) error) error {
	data, cut, err := read(func(w io.Writer) error { return get(ctx, w) })
	none := nothing("")
	switch {
	case errors.As(err, &none), len(data) == 0 && err != nil:
		return err
	case err != nil:
		c.miss(name, "its end: "+reason(ctx, err))
	case len(data) == 0:
		return errors.New("it is empty")
	}
	if cut {
		c.miss(name, fmt.Sprintf("its beginning: it is longer than %d MiB, of which the end is kept", maxFile>>20))
	}
	if err := c.folder.write(name, data); err != nil {
		c.miss(name, err.Error())
	}
	return nil
}

// keepOrMiss is keep for what cannot be had in another way.
func (c *collector) keepOrMiss(ctx context.Context, name string, get func(context.Context, io.Writer) error) {
	if err := c.keep(ctx, name, get); err != nil {
		c.miss(name, reason(ctx, err))
	}
}
