package page

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/windows-op-readiness/windows-op-readiness/internal/show/grid"
)

// chromium returns the path of a Chromium or Chrome, or skips the test.
func chromium(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes a browser")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	t.Skip("no chromium in PATH: the page is not tested in a browser. On Debian: apt-get install chromium")
	return ""
}

// browser is one page in a headless browser.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string
	troubles []string
}

// look opens a preview in a window of the given size.
func look(t *testing.T, p *grid.Preview, width, height int64) *browser {
	t.Helper()
	binary := chromium(t)
	file := filepath.Join(t.TempDir(), "preview.html")
	if err := os.WriteFile(file, []byte(render(t, p)), 0o600); err != nil {
		t.Fatal(err)
	}
	return visit(t, binary, (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String(), width, height)
}

func visit(t *testing.T, binary, address string, width, height int64) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(binary), chromedp.UserDataDir(t.TempDir()),
		chromedp.Env("TMPDIR="+t.TempDir())) // where it leaves files
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	b.run(chromedp.Navigate("about:blank"))
	err := chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			b.requests = append(b.requests, e.Request.URL)
		case *runtime.EventExceptionThrown:
			b.troubles = append(b.troubles, (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.EmulateViewport(width, height), chromedp.Navigate(address), chromedp.WaitReady("table, .empty"))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, trouble := range b.troubles {
			t.Errorf("the page's script: %s", trouble)
		}
	})
	return b
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("in the browser: %v", err)
	}
}

// eval returns the value of an expression as text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("String("+expression+")"))
	if err != nil {
		b.t.Fatalf("in the browser: %s: %v", expression, err)
	}
	return s
}

// want waits until an expression has a value.
func (b *browser) want(expression, value string) {
	b.t.Helper()
	var last string
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		if last = b.eval(expression); last == value {
			return
		}
		b.run(chromedp.Sleep(50 * time.Millisecond))
	}
	b.t.Errorf("%s is %q, want %q", expression, last, value)
}

// click clicks in the middle of the first element that a selector finds.
func (b *browser) click(selector string) {
	b.t.Helper()
	at, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]float64]("(() => { const e = document.querySelector(`"+selector+"`); e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()"))
	if err != nil || len(at) != 2 {
		b.t.Fatalf("looking for %s: %v", selector, err)
	}
	b.run(chromedp.MouseClickXY(at[0], at[1]))
}

// point moves the mouse over the first element that a selector finds.
func (b *browser) point(selector string) {
	b.t.Helper()
	at, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]float64]("(() => { const r = document.querySelector(`"+selector+"`).getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()"))
	if err != nil || len(at) != 2 {
		b.t.Fatalf("looking for %s: %v", selector, err)
	}
	b.run(chromedp.MouseEvent("mouseMoved", at[0], at[1]))
}

// write clicks into the first element that a selector finds, and types.
func (b *browser) write(selector, text string) {
	b.t.Helper()
	b.click(selector)
	b.keys(text)
}

func (b *browser) keys(keys string) { b.t.Helper(); b.run(chromedp.KeyEvent(keys)) }

// picture keeps a screenshot where OP_READINESS_SCREENSHOTS says.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("OP_READINESS_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) dark() {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}); err != nil {
		b.t.Fatal(err)
	}
}

const (
	visibleRows = `document.querySelectorAll(".panel:not([hidden]) tbody tr:not([hidden])").length`
	focused     = `document.activeElement.getAttribute("aria-label") || document.activeElement.textContent`
	cardText    = `document.querySelector("#card .text").textContent`
	cardShown   = `!document.querySelector("#card").hidden`
)

func TestFilterInABrowser(t *testing.T) {
	b := look(t, sample(1, 12, 48), 1280, 900)
	b.want(visibleRows, "48")
	b.want(`document.querySelector(".count").textContent`, "48 rows")
	b.write(`.filter input`, "STORAGE variant 1")
	b.want(visibleRows, "11")
	b.want(`document.querySelector(".count").textContent`, "11 of 48 rows")
	b.picture("filter")
	b.write(`.filter input`, " nothing-of-that-name")
	b.want(visibleRows, "0")
	b.want(`document.querySelector(".scroll .empty").hidden`, "false")
	b.click(`.scroll .empty button`)
	b.want(visibleRows, "48")
	b.run(chromedp.Evaluate[chromedp.Void](`(() => { const s = document.querySelector(".show select"); s.value = "flaky"; s.dispatchEvent(new Event("change")); })()`))
	b.want(`[...document.querySelectorAll("tbody tr:not([hidden])")].every(r => r.querySelector(".flaky"))`, "true")
	b.want(`[...document.querySelectorAll("tbody tr[hidden]")].some(r => r.querySelector(".flaky"))`, "false")
}

func TestKeyboardInABrowser(t *testing.T) {
	b := look(t, sample(1, 12, 48), 1280, 900)
	b.want(`document.querySelectorAll("table [tabindex='0']").length`, "1")
	b.run(chromedp.Evaluate[chromedp.Void](`document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true}))`))
	b.want(`document.activeElement.type`, "search")
	b.keys(kb.Tab + kb.Tab)
	b.want(focused, "build 1991000000000000012, started 2026-01-15 09:30 UTC, Commit 8b1f20c3a, kubernetes-version v1.36.3, windows-version 10.0.20348")
	b.keys(kb.ArrowDown)
	b.want(focused, "running: Build still running...")
	b.want(cardShown, "true")
	b.want(cardText, "Build still running...")
	b.picture("keyboard")
	b.keys(kb.Escape)
	b.want(cardShown, "false")
	b.keys(kb.End)
	b.want(`document.activeElement.cellIndex`, "12")
	b.keys(kb.ArrowRight)
	b.want(`document.activeElement.cellIndex`, "12")
	b.keys(kb.Home + kb.PageDown)
	b.want(`document.activeElement.parentElement.rowIndex > 10`, "true")
	b.want(`(() => { const c = document.activeElement.getBoundingClientRect(), h = document.querySelector("thead").getBoundingClientRect(); return c.top >= h.bottom && c.bottom <= innerHeight; })()`, "true")
	b.want(`document.querySelectorAll("table [tabindex='0']").length`, "1")
	b.keys(kb.Tab)
	b.want(`!!document.activeElement.closest("table")`, "false")
}

func TestMessagesInABrowser(t *testing.T) {
	b := look(t, sample(1, 12, 48), 1280, 900)
	const message = "expected the pod to be reachable\nTimed out after 300.001s. Expected success, but got: dial tcp 10.244.3.17:8080: i/o timeout"
	b.want(cardShown, "false")
	b.point(`tbody .fail`)
	b.want(cardShown, "true")
	b.want(cardText, message)
	b.want(`document.querySelector("#card .status").textContent`, "failed")
	b.want(`document.querySelector("#card dd").textContent.startsWith("19910000000000000")`, "true")
	b.want(`/^https:\/\/example.com\/builds\/\d+$/.test(document.querySelector("#card a").href)`, "true")
	b.picture("message")
	b.click(`tbody .flaky`)
	b.want(cardText, "1/2 runs passed: connection refused")
	b.click(`h1`)
	b.want(cardShown, "false")
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("table [tabindex='0']").focus()`))
	b.keys(kb.Enter)
	b.want(`location.href.startsWith("https://example.com/builds/") || location.href.startsWith("chrome-error:")`, "true")
}

func TestTabsInABrowser(t *testing.T) {
	b := look(t, sample(3, 12, 48), 1280, 900)
	b.want(`[...document.querySelectorAll(".panel")].filter(p => !p.hidden).length`, "1")
	b.picture("tabs")
	b.click(`#tab2`)
	b.want(`document.querySelector(".panel:not([hidden])").id`, "panel2")
	b.want(`document.activeElement.id + document.activeElement.getAttribute("aria-selected")`, "tab2true")
	b.keys(kb.ArrowRight)
	b.want(`document.querySelector(".panel:not([hidden])").id + location.hash`, "panel3#panel3")
	b.click(`.panel:not([hidden]) summary`)
	b.picture("alerts")
}

func TestThemesInABrowser(t *testing.T) {
	const paper = `getComputedStyle(document.body).backgroundColor`
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"wide", 1440, 900}, {"narrow", 390, 844}} {
		t.Run(size.name, func(t *testing.T) {
			b := look(t, sample(1, 30, 48), size.width, size.height)
			light := b.eval(paper)
			b.picture("light-" + size.name)
			b.dark()
			b.want(paper+` !== "`+light+`"`, "true")
			b.picture("dark-" + size.name)
			b.click("#theme")
			b.want(paper, light)
			b.want(`document.documentElement.scrollWidth <= innerWidth`, "true") // only the grid scrolls sideways
		})
	}
}

func TestHostileTextsInABrowser(t *testing.T) {
	b := look(t, hostile(), 1280, 900)
	b.want(`document.querySelectorAll("tbody tr").length`, "6")
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("*").forEach(e => e.dispatchEvent(new MouseEvent("mouseover", {bubbles: false})))`))
	b.click(`tbody td.fail`)
	b.want(cardShown, "true")
	b.picture("hostile")
	b.want(`window.harmed`, "undefined")
	b.want(`document.querySelectorAll("img, script, iframe, [onerror], [onmouseover], a[href^=javascript]").length`, "1")
	b.want(`document.querySelector("#card a").hasAttribute("href")`, "false")
	b.onlyItself()
}

// onlyItself fails the test when the page has asked for anything but itself.
func (b *browser) onlyItself() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.requests) != 1 {
		b.t.Errorf("the page made requests: %s", strings.Join(b.requests, "\n"))
	}
}

func TestFromABucketInABrowser(t *testing.T) {
	binary := chromium(t)
	out := render(t, sample(1, 5, 9))
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(out))
	}))
	t.Cleanup(server.Close)
	b := visit(t, binary, server.URL+"/bucket/preview.html", 1280, 900)
	b.want(visibleRows, "9")
	mu.Lock()
	defer mu.Unlock()
	for _, path := range asked {
		if path != "/bucket/preview.html" && path != "/favicon.ico" { // the browser asks for the latter by itself
			t.Errorf("the page asked for %s", path)
		}
	}
}

func TestManyBuildsAndRowsInABrowser(t *testing.T) {
	b := look(t, sample(1, 200, 300), 1440, 900)
	b.want(`document.querySelectorAll("tbody td").length`, "60000")
	b.picture("many")
	b.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("table [tabindex='0']").focus()`))
	b.run(chromedp.Evaluate[chromedp.Void](`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "End", ctrlKey: true, bubbles: true}))`))
	b.want(`document.activeElement.cellIndex + "," + document.activeElement.parentElement.rowIndex`, "200,303")
	b.want(`(() => { const c = document.activeElement.getBoundingClientRect(); return c.top > 0 && c.left > 0 && c.bottom <= innerHeight && c.right <= innerWidth; })()`, "true")
	b.picture("many-end")
	b.write(`.filter input`, "variant 299")
	b.want(visibleRows, "1")
}

// TestAccessibilityInABrowser asks the browser what a screen reader is told.
func TestAccessibilityInABrowser(t *testing.T) {
	b := look(t, sample(2, 6, 12), 1280, 900)
	for expression, want := range map[string]string{
		`document.documentElement.lang`:                                                                                          "en",
		`document.querySelectorAll("h1").length`:                                                                                 "1",
		`document.querySelectorAll("input:not([type=hidden])").length`:                                                           "2",
		`[...document.querySelectorAll("input, select")].every(i => i.labels.length === 1)`:                                      "true",
		`[...document.querySelectorAll("tbody td")].every(c => c.getAttribute("aria-label"))`:                                    "true",
		`[...document.querySelectorAll("[aria-controls]")].every(e => document.getElementById(e.getAttribute("aria-controls")))`: "true",
		`new Set([...document.querySelectorAll("[id]")].map(e => e.id)).size === document.querySelectorAll("[id]").length`:       "true",
	} {
		b.want(expression, want)
	}
	// axe-core is not in this repository; who has it names its axe.min.js.
	script := os.Getenv("OP_READINESS_AXE")
	if script == "" {
		t.Log("OP_READINESS_AXE is not set: not checked with axe-core (npm pack axe-core; OP_READINESS_AXE=…/axe.min.js)")
		return
	}
	axe, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.Evaluate[chromedp.Void](string(axe) + ";1"))
	check := func(theme string) {
		found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => v.id + " (" + v.impact + "): " + v.help + "\n" + v.nodes.slice(0, 4).map(n => "    " + n.html.slice(0, 160) + "\n      " + n.failureSummary).join("\n")).join("\n"))`, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		if found != "" {
			t.Errorf("axe-core, %s:\n%s", theme, found)
		}
	}
	check("light")
	b.dark()
	check("dark")
	b.click(`tbody .fail, tbody .skip`)
	check("dark, with the card")
}
