package junit

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// MaxHeld is how many bytes of output Prune holds in memory: the counts stand in
// the head of a suite, before the cases they count.
const MaxHeld = 4 << 20

// ErrTooMuchKept means that Prune would have to hold more than MaxHeld bytes,
// and cannot read its input a second time instead.
var ErrTooMuchKept = errors.New("too much is kept to hold it in memory; prune a file instead of a stream")

// Prune copies a document and leaves out the cases that opts.Keep does not want.
// Suites stay, with names, attributes, properties and output, and get the counts
// of what is left in them. Memory is bounded whatever the input: when more than
// MaxHeld bytes are kept, src is read a second time if it is an io.Seeker, from
// where it stood; otherwise the error is ErrTooMuchKept. Nothing is written
// before the input has proved to be sound.
func Prune(dst io.Writer, src io.Reader, opts Options) (Summary, error) {
	seeker, _ := src.(io.Seeker)
	var begin int64
	if seeker != nil {
		var err error
		if begin, err = seeker.Seek(0, io.SeekCurrent); err != nil {
			seeker = nil // a pipe that looks like a file
		}
	}

	// The first reading counts, and holds the output as long as it is small.
	held := &spool{}
	defer held.release()
	first := newPruner(src, opts, held)
	first.counting = true
	if err := first.document(); err != nil {
		return first.sum, err
	}
	if !held.full {
		return first.sum, held.writeTo(dst, first.counted)
	}
	if seeker == nil {
		return first.sum, fmt.Errorf("pruning %s: %w", opts.Source, ErrTooMuchKept)
	}

	// The second knows the counts.
	if _, err := seeker.Seek(begin, io.SeekStart); err != nil {
		return first.sum, fmt.Errorf("pruning %s: reading it again: %w", opts.Source, err)
	}
	second := newPruner(src, opts, dst)
	second.counted = first.counted
	if err := second.document(); err != nil {
		return first.sum, err
	}
	if second.sum != first.sum {
		return first.sum, fmt.Errorf("pruning %s: the input changed while it was read", opts.Source)
	}
	return first.sum, nil
}

// pruner writes what its parser reads.
type pruner struct {
	*parser
	out      printer
	counting bool
	counted  []Counts // of each suite, in the order of their starts
	begun    int      // suites so far
	open     []int    // indexes of the open suites in counted
	elements []string // their names
}

func newPruner(src io.Reader, opts Options, dst io.Writer) *pruner {
	p := &pruner{parser: newParser(src, opts), out: printer{w: dst}}
	held, _ := dst.(*spool)
	// ignore tells that the first reading only counts from here on.
	ignore := func() bool { return held != nil && held.full }

	p.out.raw(header)
	p.onSuite = func(element string, _ tag) error {
		p.open = append(p.open, p.begun)
		p.elements = append(p.elements, element)
		if p.counting {
			p.counted = append(p.counted, Counts{})
		}
		if p.begun >= len(p.counted) {
			return fmt.Errorf("pruning %s: the input changed while it was read", opts.Source)
		}
		if !ignore() {
			p.out.head(element, p.attr("name"), p.otherAttrs(nil, "name"))
			if held != nil {
				p.out.flush()
				held.mark()
			} else {
				p.out.counts(p.counted[p.begun])
			}
			p.out.depth++
		}
		p.begun++
		return p.out.err
	}
	p.onProperties = func(ps []Property) error {
		if !ignore() {
			p.out.properties(ps)
		}
		return p.out.err
	}
	p.onOutput = func(element, text string) error {
		if !ignore() {
			p.out.output(element, text)
		}
		return p.out.err
	}
	p.onCase = func(c *Case) error {
		if !ignore() {
			p.out.testcase(c)
		}
		return p.out.err
	}
	p.onCounts = func(c Counts) {
		if p.counting {
			for _, i := range p.open {
				p.counted[i] = p.counted[i].Plus(c)
			}
		}
	}
	p.onSuiteEnd = func() error {
		last := len(p.open) - 1
		if !ignore() {
			p.out.depth--
			p.out.close(p.elements[last])
			if last == 0 {
				p.out.flush()
			}
		}
		p.open, p.elements = p.open[:last], p.elements[:last]
		return p.out.err
	}
	return p
}

// spool holds output in memory, and where in it the counts of suites belong. It
// lets go of everything when that becomes too much.
type spool struct {
	blocks [][]byte
	size   int
	marks  []int
	full   bool
}

const spoolBlock = 64 << 10

// spoolBlocks are blocks to use again: whoever prunes, prunes many files.
var spoolBlocks = sync.Pool{New: func() any { return new([spoolBlock]byte) }}

// release lets go of what is held.
func (s *spool) release() {
	for _, b := range s.blocks {
		spoolBlocks.Put((*[spoolBlock]byte)(b[:spoolBlock]))
	}
	s.blocks, s.marks = nil, nil
}

func (s *spool) Write(b []byte) (int, error) {
	n := len(b)
	if s.full = s.full || s.size+n > MaxHeld; s.full {
		s.release()
		return n, nil
	}
	s.size += n
	for len(b) > 0 {
		last := len(s.blocks) - 1
		if last < 0 || len(s.blocks[last]) == cap(s.blocks[last]) {
			s.blocks = append(s.blocks, spoolBlocks.Get().(*[spoolBlock]byte)[:0])
			last++
		}
		block := s.blocks[last]
		fits := min(len(b), cap(block)-len(block))
		s.blocks[last] = append(block, b[:fits]...)
		b = b[fits:]
	}
	return n, nil
}

// mark notes that the counts of the next suite belong here.
func (s *spool) mark() {
	if !s.full {
		s.marks = append(s.marks, s.size)
	}
}

// writeTo writes what is held, with the counts of each suite put in.
func (s *spool) writeTo(w io.Writer, counted []Counts) error {
	at, suite := 0, 0
	for _, block := range s.blocks {
		for ; suite < len(s.marks) && s.marks[suite] <= at+len(block); suite++ {
			n := s.marks[suite] - at
			if _, err := w.Write(appendCounts(block[:n:n], counted[suite])); err != nil {
				return err
			}
			block = block[n:]
			at += n
		}
		if _, err := w.Write(block); err != nil {
			return err
		}
		at += len(block)
	}
	return nil
}
