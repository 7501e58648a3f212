"use strict";
(function () {
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => Array.from(from.querySelectorAll(selector));

  // Theme: what the system has, until the button says otherwise.
  const root = document.documentElement, theme = $("#theme");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", dark() ? "Use light colours" : "Use dark colours"); };
  try { const kept = localStorage.getItem("testgrid-preview-theme"); if (kept === "dark" || kept === "light") root.dataset.theme = kept; } catch { /* not kept */ }
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("testgrid-preview-theme", root.dataset.theme); } catch { /* not kept */ }
    name();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();

  // Tabs: https://www.w3.org/WAI/ARIA/apg/patterns/tabs/
  const tabs = $$("[role=tab]"), panels = $$(".panel");
  function select(id, focus) {
    const panel = panels.find((p) => p.id === id) || panels.find((p) => p.querySelector("table")) || panels[0];
    if (!panel) return;
    for (const p of panels) p.hidden = p !== panel;
    for (const t of tabs) {
      const on = t.getAttribute("aria-controls") === panel.id;
      t.setAttribute("aria-selected", String(on));
      t.tabIndex = on ? 0 : -1;
      if (on && focus) t.focus();
      else if (on) t.scrollIntoView({ block: "nearest" });
    }
    hide();
  }
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", (e) => { e.preventDefault(); history.replaceState(null, "", "#" + tab.getAttribute("aria-controls")); select(tab.getAttribute("aria-controls"), true); });
    tab.addEventListener("keydown", (e) => {
      const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[e.key];
      if (to === undefined) { if (e.key === " ") { e.preventDefault(); tab.click(); } return; }
      e.preventDefault();
      tabs[(to + tabs.length) % tabs.length].click();
    });
  });

  // The card with the details of what is pointed at, or has the focus.
  const card = $("#card"), link = $("#card a");
  let shown = null, pinned = false, later = 0;
  function show(cell) {
    clearTimeout(later);
    const row = cell.parentElement, body = row.parentElement.tagName === "TBODY", table = cell.closest("table");
    const column = cell.cellIndex > 0 ? table.tHead.rows[0].cells[cell.cellIndex] : null;
    const label = cell.getAttribute("aria-label") || "", at = label.indexOf(": ");
    const status = $("#card .status"), text = $("#card .text"), list = $("#card dl");
    const words = body && column ? (at < 0 ? label : label.slice(0, at)) : "";
    status.textContent = words;
    status.className = "status " + (words ? cell.className : "");
    status.hidden = !words;
    $("#card .row").textContent = body ? row.cells[0].textContent : "Build " + (column ? column.dataset.build : "");
    text.textContent = words && at >= 0 ? label.slice(at + 2) : "";
    text.hidden = !text.textContent;
    list.replaceChildren();
    const say = (term, value) => {
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = term; dd.textContent = value; list.append(dt, dd);
    };
    if (column) {
      if (body) say("Build", column.dataset.build);
      for (const d of $$("data", column)) say(d.textContent, d.value);
    }
    const to = column && $("a", column);
    link.parentElement.hidden = !to;
    if (to) link.href = to.href; else link.removeAttribute("href");
    card.hidden = false;
    shown = cell;
    place(cell);
  }
  function place(cell) {
    const c = cell.getBoundingClientRect(), me = card.getBoundingClientRect(), gap = 8;
    let top = c.bottom + gap, left = Math.min(c.left, innerWidth - me.width - gap);
    if (top + me.height > innerHeight - gap) top = c.top - me.height - gap;
    if (top < gap) top = Math.max(gap, innerHeight - me.height - gap);
    card.style.top = top + "px";
    card.style.left = Math.max(gap, left) + "px";
  }
  function hide() { clearTimeout(later); card.hidden = true; pinned = false; shown = null; }
  function hideSoon() { clearTimeout(later); if (!pinned) later = setTimeout(() => { if (!pinned && !(document.activeElement && document.activeElement === shown)) hide(); }, 180); }
  card.addEventListener("mouseenter", () => clearTimeout(later));
  card.addEventListener("mouseleave", hideSoon);
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && !card.hidden) { const back = card.contains(document.activeElement) && shown; hide(); if (back) back.focus(); }
    if (e.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && !e.ctrlKey && !e.metaKey && !e.altKey) {
      const input = panels.map((p) => (p.hidden ? null : $(".filter input", p))).find(Boolean);
      if (input) { e.preventDefault(); input.focus(); input.select(); }
    }
  });
  document.addEventListener("click", (e) => { if (!card.hidden && !card.contains(e.target) && !e.target.closest("table")) hide(); });
  addEventListener("resize", () => { if (shown) place(shown); });

  for (const panel of panels) {
    const table = $("table", panel);
    if (!table) continue;
    const head = table.tHead.rows[0], rows = Array.from(table.tBodies[0].rows), scroll = $(".scroll", panel);
    const names = rows.map((r) => r.cells[0].textContent.toLowerCase());

    // Filter.
    const tools = $(".tools", panel), input = $("input", tools), choice = $("select", tools), count = $(".count", tools), empty = $(".scroll .empty", panel);
    function filter() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean), want = choice.value;
      let n = 0;
      rows.forEach((r, i) => {
        const fits = words.every((w) => names[i].includes(w)) &&
          (want === "" || (want === "newest" ? !["pass", "skip", "none", ""].includes(r.dataset.newest) : r.dataset.has.split(" ").includes(want)));
        r.hidden = !fits;
        if (fits) n++;
      });
      count.textContent = n === rows.length ? n + (n === 1 ? " row" : " rows") : n + " of " + rows.length + " rows";
      empty.hidden = n > 0;
      hide();
      if (!current.isConnected || current.parentElement.hidden) stop(head.cells[1] || head.cells[0], false);
    }
    input.addEventListener("input", filter);
    input.addEventListener("keydown", (e) => { if (e.key === "ArrowDown") { const first = rows.find((r) => !r.hidden); if (first) { e.preventDefault(); stop(first.cells[0], true); } } });
    choice.addEventListener("change", filter);
    $("button", empty).addEventListener("click", () => { input.value = ""; choice.value = ""; filter(); input.focus(); });
    tools.hidden = false;

    // The grid: one stop of the Tab key, arrow keys inside.
    let current = head.cells[1] || head.cells[0];
    current.tabIndex = 0;
    function stop(cell, focus) {
      current.removeAttribute("tabindex");
      current = cell;
      current.tabIndex = 0;
      if (focus) { cell.focus({ preventScroll: true }); reveal(cell); show(cell); }
    }
    function reveal(cell) {
      const box = scroll.getBoundingClientRect(), c = cell.getBoundingClientRect();
      const corner = head.cells[0].getBoundingClientRect(), inset = corner.width < box.width / 2 ? corner.width : 0;
      if (cell.cellIndex > 0) {
        if (c.left < box.left + inset) scroll.scrollLeft -= box.left + inset - c.left + 4;
        else if (c.right > box.right - 16) scroll.scrollLeft += c.right - box.right + 16;
      }
      if (cell.closest("tbody")) {
        const top = table.tHead.getBoundingClientRect().bottom;
        if (c.top < top) scroll.scrollTop -= top - c.top + 4;
        else if (c.bottom > box.bottom - 16) scroll.scrollTop += c.bottom - box.bottom + 16;
      }
      const after = cell.getBoundingClientRect();
      if (after.top < 0 || after.bottom > innerHeight) cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    table.addEventListener("keydown", (e) => {
      const cell = e.target.closest("td, th");
      if (!cell) return;
      const lines = [head, ...rows.filter((r) => !r.hidden)];
      let y = lines.indexOf(cell.parentElement), x = cell.cellIndex;
      const last = head.cells.length - 1, page = Math.max(1, Math.floor(scroll.clientHeight / (rows[0].offsetHeight || 28)) - 4);
      switch (e.key) {
        case "ArrowRight": x++; break;
        case "ArrowLeft": x--; break;
        case "ArrowDown": y++; break;
        case "ArrowUp": y--; break;
        case "PageDown": y += page; break;
        case "PageUp": y -= page; break;
        case "Home": x = 0; if (e.ctrlKey) y = 0; break;
        case "End": x = last; if (e.ctrlKey) y = lines.length - 1; break;
        case "Enter": case " ": {
          e.preventDefault();
          const to = $("a", head.cells[x]);
          if (e.key === "Enter" && to && x > 0) { open(to.href, "_self"); return; }
          pinned = true; show(cell);
          return;
        }
        default: return;
      }
      e.preventDefault();
      x = Math.max(0, Math.min(last, x)); y = Math.max(0, Math.min(lines.length - 1, y));
      stop(lines[y].cells[x], true);
    });
    table.addEventListener("focusin", (e) => { const cell = e.target.closest("td, th"); if (cell && cell !== shown && !cell.closest(".header")) { show(cell); } });
    table.addEventListener("focusout", hideSoon);
    table.addEventListener("mouseover", (e) => {
      const cell = e.target.closest("td, th");
      if (!cell || pinned || cell.closest(".header") || cell.matches(".corner")) return;
      clearTimeout(later);
      later = setTimeout(() => show(cell), card.hidden ? 90 : 20);
    });
    table.addEventListener("mouseleave", hideSoon);
    table.addEventListener("click", (e) => {
      const cell = e.target.closest("td, th");
      if (!cell || e.target.closest("a") || cell.closest(".header") || cell.matches(".corner")) return;
      stop(cell, true);
      pinned = true;
    });
    scroll.addEventListener("scroll", () => { if (shown && table.contains(shown)) { if (document.activeElement === shown) place(shown); else hide(); } }, { passive: true });
    filter();
  }
  select(location.hash.slice(1), false);
  addEventListener("hashchange", () => select(location.hash.slice(1), false));
})();
