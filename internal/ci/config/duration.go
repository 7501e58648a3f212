package config

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/invopop/jsonschema"
	"gopkg.in/yaml.v3"
)

// Duration is a time such as 90m or 24h, written as Go writes it. The zero
// value is one that was not given: none that is given may be zero.
type Duration time.Duration

const durationPattern = `^([0-9]+h)?([0-9]+m)?([0-9]+s)?$`

// JSONSchema describes a Duration.
func (Duration) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: durationPattern, MinLength: length(2), MaxLength: length(12)}
}

// UnmarshalYAML reads a Duration. What the schema refuses never comes here.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	parsed, err := time.ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalYAML writes a Duration as it is read.
func (d Duration) MarshalYAML() (any, error) { return d.String(), nil }

// String is the duration without zero parts: 4h, 90m is 1h30m.
func (d Duration) String() string {
	var text string
	rest := time.Duration(d)
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := rest / unit.size; n > 0 {
			text += fmt.Sprint(int64(n), unit.name)
			rest -= n * unit.size
		}
	}
	if text == "" {
		return "0s"
	}
	return text
}

// Hours is the duration in whole hours, rounded up.
func (d Duration) Hours() int { return int(math.Ceil(time.Duration(d).Hours())) }

// Values is a list of texts that may also be written as one text.
type Values []string

// JSONSchema describes Values.
func (Values) JSONSchema() *jsonschema.Schema {
	one := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string", MinLength: length(1)} }
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		one(),
		{Type: "array", Items: one(), MinItems: length(1), UniqueItems: true},
	}}
}

// UnmarshalYAML reads one text or a list of them.
func (v *Values) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*v = Values{n.Value}
		return nil
	}
	return n.Decode((*[]string)(v))
}

func length(n uint64) *uint64 { return &n }

var durationType = reflect.TypeFor[Duration]()
