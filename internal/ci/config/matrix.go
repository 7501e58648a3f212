package config

import (
	"slices"
	"strings"

	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

// Values of axes that mean something to this program.
const (
	// IsolationHyperV runs Windows containers in virtual machines of their own.
	IsolationHyperV = "hyperv"
	// ProviderExisting is a cluster whose kubeconfig is brought.
	ProviderExisting = "existing"
	// ProviderKwok is a simulated cluster that is made for the run.
	ProviderKwok = "kwok"
	// ProviderCAPZ is a cluster on Azure that Prow's profile capz makes.
	ProviderCAPZ = "capz"
	// BranchMaster is the branch where Kubernetes is developed.
	BranchMaster = "master"
)

// Cell is one combination of the axes: one cluster to test.
type Cell struct {
	// Name is unique among the cells, and part of job names: "1-36-ltsc2022-hyperv".
	Name string `json:"name"`
	// Title is the same for people and TestGrid's tabs: "1.36-ltsc2022-hyperv".
	Title string `json:"title"`
	// Kubernetes is a version without v ("1.36", "1.36.3") or a branch of
	// Kubernetes (release-1.35, master).
	Kubernetes string `json:"kubernetes"`
	// Windows is 2019, 2022 or 2025.
	Windows string `json:"windows"`
	// CNI is "" where the file does not speak of it.
	CNI       string `json:"cni,omitempty"`
	Runtime   string `json:"runtime"`
	Isolation string `json:"isolation"`
	Provider  string `json:"provider"`
}

// Branch is the branch of Kubernetes whose newest build the cell tests, "" if
// it tests a release.
func (c Cell) Branch() string {
	if c.Kubernetes == BranchMaster || strings.HasPrefix(c.Kubernetes, "release-") {
		return c.Kubernetes
	}
	return ""
}

// Version is the Kubernetes version, with or without its patch, as far as the
// cell says it: "1.36.3", "1.36" (also for release-1.36), "" for master.
func (c Cell) Version() string {
	if c.Kubernetes == BranchMaster {
		return ""
	}
	return strings.TrimPrefix(c.Kubernetes, "release-")
}

// Simulated is the release of Kubernetes that a cell of provider kwok is made
// of: the one that it names, or the newest of its minor whose tests are known;
// "" where there is none.
func (c Cell) Simulated() string {
	v, err := specs.ParseVersion(c.Kubernetes)
	if err != nil {
		return ""
	}
	if v.Patch >= 0 {
		return "v" + v.String()
	}
	for _, known := range slices.Backward(specs.Catalogues()) {
		if k, err := specs.ParseVersion(known); err == nil && k.MinorString() == v.MinorString() {
			return known
		}
	}
	return ""
}

// RuntimeClass is what 'op-readiness run --runtime-class' is given for the
// cell's isolation, "" for none. The name is containerd's.
func (c Cell) RuntimeClass() string {
	if c.Isolation == IsolationHyperV {
		return specs.HyperVClass
	}
	return ""
}

// Expand replaces {cell}, {kubernetes}, {windows}, {cni}, {runtime},
// {isolation} and {provider} by the cell's, each in the form of names: lower
// case, with dashes.
func (c Cell) Expand(text string) string {
	return placeholders.ReplaceAllStringFunc(text, func(p string) string {
		if p == "{cell}" {
			return c.Name
		}
		value, ok := c.axis(strings.Trim(p, "{}"))
		if !ok {
			return p
		}
		return slug(value)
	})
}

// unlike says by which values two cells differ: "cni x, runtime containerd".
func (c Cell) unlike(other Cell) (one, another string) {
	var mine, theirs []string
	for _, axis := range axes {
		a, _ := c.axis(axis)
		b, _ := other.axis(axis)
		if a != b {
			mine, theirs = append(mine, axis+" "+a), append(theirs, axis+" "+b)
		}
	}
	return strings.Join(mine, ", "), strings.Join(theirs, ", ")
}

// axes are the names of the axes, in the order in which they vary, the last
// one fastest.
var axes = []string{"kubernetes", "windows", "cni", "runtime", "isolation", "provider"}

func (c Cell) axis(name string) (string, bool) {
	p := c.field(name)
	if p == nil {
		return "", false
	}
	return *p, true
}

// field is where an axis is kept; nil for no axis.
func (c *Cell) field(axis string) *string {
	switch axis {
	case "kubernetes":
		return &c.Kubernetes
	case "windows":
		return &c.Windows
	case "cni":
		return &c.CNI
	case "runtime":
		return &c.Runtime
	case "isolation":
		return &c.Isolation
	case "provider":
		return &c.Provider
	}
	return nil
}

// values are those of an axis, with what it has when the file is silent.
func (c *Config) values(axis string) []string {
	m := &c.Matrix
	var values []string
	usual := ""
	switch axis {
	case "kubernetes":
		for _, v := range m.Kubernetes {
			values = append(values, normal(v))
		}
	case "windows":
		values = m.Windows
	case "cni":
		values = m.CNI
	case "runtime":
		values, usual = m.Runtime, "containerd"
	case "isolation":
		values, usual = m.Isolation, "process"
	case "provider":
		values, usual = m.Provider, ProviderExisting
		if c.Prow != nil && c.Prow.Profile == ProfileCAPZ {
			usual = ProviderCAPZ
		}
	}
	if len(values) == 0 && axis != "kubernetes" && axis != "windows" {
		return []string{usual}
	}
	return values
}

// normal is a Kubernetes version without its v.
func normal(version string) string { return strings.TrimPrefix(version, "v") }

// Cells are the cells of the matrix: the combinations in the order of the
// axes, without the excluded, then the included.
func (c *Config) Cells() []Cell {
	cells := c.combinations()
	cells = slices.DeleteFunc(cells, func(cell Cell) bool {
		return slices.ContainsFunc(c.Matrix.Exclude, func(s Selector) bool { return s.Matches(cell) })
	})
	for i := range c.Matrix.Include {
		cells = append(cells, c.cell(&c.Matrix.Include[i]))
	}
	return cells
}

func (c *Config) combinations() []Cell {
	cells := []Cell{{}}
	for _, axis := range axes {
		var more []Cell
		for _, cell := range cells {
			for _, value := range c.values(axis) {
				*cell.field(axis) = value
				more = append(more, cell)
			}
		}
		cells = more
	}
	for i := range cells {
		c.nameCell(&cells[i])
	}
	return cells
}

// cell is the one that an entry describes; what it does not name is the first
// value of the axis.
func (c *Config) cell(i *Include) Cell {
	cell := Cell{Kubernetes: normal(i.Kubernetes), Windows: i.Windows, CNI: i.CNI, Runtime: i.Runtime, Isolation: i.Isolation, Provider: i.Provider}
	for _, axis := range axes {
		if p := cell.field(axis); *p == "" {
			if axis == "cni" && i.Provider == ProviderKwok {
				continue // simulated nodes have none
			}
			if values := c.values(axis); len(values) > 0 {
				*p = values[0]
			}
		}
	}
	c.nameCell(&cell)
	return cell
}

// nameCell names a cell by Kubernetes and Windows, and by whatever is not the
// first value of its axis, so that a value that is added changes no name.
func (c *Config) nameCell(cell *Cell) {
	parts := []string{cell.Kubernetes, "ltsc" + cell.Windows}
	for _, axis := range axes[2:] {
		value, _ := cell.axis(axis)
		if value != "" && value != c.values(axis)[0] {
			parts = append(parts, value)
		}
	}
	cell.Title = strings.Join(parts, "-")
	cell.Name = slug(cell.Title)
}

// Matches says whether the cell has one of the selector's values on each axis
// that the selector names.
func (s Selector) Matches(cell Cell) bool {
	for _, axis := range axes {
		wanted := s.axis(axis)
		value, _ := cell.axis(axis)
		if len(wanted) > 0 && !slices.Contains(wanted, value) {
			return false
		}
	}
	return true
}

// axis is what the selector names on an axis, as cells spell it.
func (s Selector) axis(name string) []string {
	switch name {
	case "kubernetes":
		var values []string
		for _, v := range s.Kubernetes {
			values = append(values, normal(v))
		}
		return values
	case "windows":
		return s.Windows
	case "cni":
		return s.CNI
	case "runtime":
		return s.Runtime
	case "isolation":
		return s.Isolation
	}
	return s.Provider
}

func (s Selector) empty() bool {
	return !slices.ContainsFunc(axes, func(axis string) bool { return len(s.axis(axis)) > 0 })
}

// Categories are those of the standard that runs select, in its order.
func (c *Config) Categories() []specs.Category {
	return parseCategories(c.Run.Categories)
}

// parseCategories returns the named categories in the standard's order, all of
// them for none.
func parseCategories(names []string) []specs.Category {
	all := specs.Categories()
	if len(names) == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c specs.Category) bool { return !slices.Contains(names, string(c)) })
}
