package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

// Format is a way to write a list or a report.
type Format string

// The formats.
const (
	FormatTable    Format = "table"
	FormatJSON     Format = "json"
	FormatMarkdown Format = "markdown"
	FormatCSV      Format = "csv"
)

// Table is a list to be shown: a header, rows, and what JSON readers get in
// place of them. Cells are text: what they could do to a terminal, a page or a
// spreadsheet, Write takes from them.
type Table struct {
	Header []string
	Rows   [][]string
	// MaxWidths limits the width of columns in FormatTable, by header.
	MaxWidths map[string]int
	// Value is what FormatJSON writes.
	Value any
}

// ValidFormat returns an error that names the known formats when f is none of
// them.
func ValidFormat(f Format) error {
	switch f {
	case FormatTable, FormatJSON, FormatMarkdown, FormatCSV:
		return nil
	}
	return fmt.Errorf("unknown format %q: use table, json, markdown, csv", f)
}

// Write writes t to w in the given format.
func (t *Table) Write(w io.Writer, format Format) error {
	if err := ValidFormat(format); err != nil {
		return err
	}
	if format == FormatJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(t.Value)
	}
	tw := table.NewWriter()
	tw.SetStyle(plainStyle())
	tw.AppendHeader(toRow(t.Header, format))
	for _, r := range t.Rows {
		tw.AppendRow(toRow(r, format))
	}
	var configs []table.ColumnConfig
	for _, h := range t.Header {
		if width := t.MaxWidths[h]; width > 0 && format == FormatTable {
			configs = append(configs, table.ColumnConfig{Name: h, WidthMax: width, WidthMaxEnforcer: text.WrapSoft})
		}
	}
	tw.SetColumnConfigs(configs)
	tw.SuppressTrailingSpaces()
	var out string
	switch format {
	case FormatMarkdown:
		out = tw.RenderMarkdown()
	case FormatCSV:
		out = tw.RenderCSV()
	default:
		out = tw.Render()
	}
	_, err := fmt.Fprintln(w, strings.TrimRight(out, "\n"))
	return err
}

func toRow(cells []string, format Format) table.Row {
	row := make(table.Row, len(cells))
	for i, c := range cells {
		if c = shown.Lines(c); format == FormatMarkdown {
			c = markdown(c)
		}
		row[i] = c
	}
	return row
}

// plainStyle is columns apart by spaces, as kubectl prints them.
func plainStyle() table.Style {
	s := table.StyleDefault
	s.Box.PaddingLeft = ""
	s.Box.PaddingRight = "   "
	s.Options = table.Options{}
	s.Format.Header = text.FormatUpper
	s.CSV.FieldProtection = true // no cell is a formula
	return s
}
