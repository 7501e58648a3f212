package github

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/verdict"
	"github.com/windows-op-readiness/windows-op-readiness/specs"
)

var pictures = flag.String("pictures", "", "folder to draw comments to, as GitHub shows them; with the github-markdown.css of npm's github-markdown-css in it they look the same")

// TestPictures draws comments, to be looked at.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("no -pictures")
	}
	against := someRun("")
	against.Base = judged("",
		outcome{specs.CoreNetwork, "core-network.dns", verdict.Failed, "x"},
		outcome{specs.CoreNetwork, "core-network.node-port", verdict.Passed, ""},
		outcome{specs.CoreStorage, "core-storage.config-map", verdict.Unproven, "x"},
	).Judgement
	long := hostileReport(strings.Join(hostile[:len(hostile)-20], "  "))
	for name, r := range map[string]*Report{
		"one":     {Cells: []Cell{someRun("")}, Commit: headA, Links: someLinks},
		"matrix":  {Cells: []Cell{someRun("v1.36, ltsc2022"), someRun("v1.36, ltsc2025"), judged("v1.35, ltsc2025", outcome{specs.CoreNetwork, "core-network.dns", verdict.Passed, ""})}, Commit: headA, Links: someLinks, Reporter: "readiness.yml of fork/r"},
		"base":    {Cells: []Cell{against}, Commit: headA, Links: someLinks},
		"ready":   {Cells: []Cell{judged("", outcome{specs.CoreNetwork, "core-network.dns", verdict.Passed, ""})}, Commit: headA, Links: someLinks},
		"hostile": long,
	} {
		draw(t, name, r.Markdown(MaxComment))
	}
}

func draw(t *testing.T, name, markdown string) {
	t.Helper()
	dir, err := filepath.Abs(*pictures)
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	if err := md.Convert([]byte(strings.Replace(markdown, "<details>", "<details open>", 1)), &body); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, name+".html")
	text := fmt.Sprintf(`<!DOCTYPE html><meta charset="utf-8"><link rel="stylesheet" href="github-markdown.css"><body class="markdown-body" style="width: 830px; padding: 16px; background: white">%s`, &body)
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, browser := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(browser)
		if err != nil {
			continue
		}
		cmd := exec.Command(path, "--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=870,1100", "--user-data-dir="+t.TempDir(), "--screenshot="+filepath.Join(dir, name+".png"), "file://"+page)
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		return
	}
	t.Skip("no chromium in PATH")
}
