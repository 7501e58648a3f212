package result

import "fmt"

// Limits of how many values the files of a folder hold. In memory a value of two
// bytes, such as an empty test, takes several hundred, so a limit of a file's
// bytes alone does not bound what it grows to; with these it is below 1 GiB. The plan of all tests of e2e.test
// has less than a third of maxValues, and an event less than a hundredth of
// maxEventValues.
const (
	maxValues      = 500_000
	maxEventValues = 10_000
	// maxAllEventValues are those of all lines together.
	maxAllEventValues = 20_000_000
)

// values counts the JSON values in data, those of objects and lists among them;
// for data that is not JSON it is any number up to len(data)+1.
func values(data []byte) int {
	count, inString := 1, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == ',' || c == '[' || c == '{'):
			count++
		}
	}
	return count
}

// checkValues returns an error when data holds more than limit JSON values.
func checkValues(data []byte, limit int) error {
	if n := values(data); n > limit {
		return tooMany(n, limit)
	}
	return nil
}

func tooMany(n, limit int) error {
	return fmt.Errorf("it holds %d values, and at most %d are read: a run writes far fewer", n, limit)
}
