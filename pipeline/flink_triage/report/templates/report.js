"use strict";
// The page is complete without this script; it only adds copying, filtering and unfolding.
(function () {
  const make = (name, text, act) => {
    const element = document.createElement(name);
    element.textContent = text;
    if (act) { element.type = "button"; element.addEventListener("click", act); }
    return element;
  };

  // navigator.clipboard is missing where the page is opened as a file in some browsers.
  const copy = async (source) => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      return true;
    } catch {
      const range = document.createRange();
      range.selectNodeContents(source);
      const selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      return document.execCommand("copy");
    }
  };

  for (const source of document.querySelectorAll("pre[data-copy]")) {
    const button = make("button", "Copy", async () => {
      const done = await copy(source);
      button.textContent = done ? "Copied" : "Selected: press Ctrl+C";
      window.setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    button.className = "copy";
    button.setAttribute("aria-label", "Copy the " + source.dataset.copy);
    button.setAttribute("aria-live", "polite");
    source.after(button);
  }

  const all = () => [...document.querySelectorAll("details")];
  const toggle = make("button", "Unfold all", () => {
    const open = toggle.textContent === "Unfold all";
    all().forEach((details) => { details.open = open; });
    toggle.textContent = open ? "Fold all" : "Unfold all";
  });
  document.getElementById("tools").append(toggle);

  const unfoldTarget = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) { target.open = true; target.scrollIntoView(); }
  };
  window.addEventListener("hashchange", unfoldTarget);
  unfoldTarget();

  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = all().filter((details) => !details.open);
    folded.forEach((details) => { details.open = true; });
  });
  window.addEventListener("afterprint", () => {
    folded.forEach((details) => { details.open = false; });
  });

  const place = document.getElementById("filter-place");
  if (!place) { return; }
  const rows = [...document.querySelectorAll("[data-row]")];
  const box = document.createElement("input");
  box.type = "search";
  box.placeholder = "Filter: deployment, cause, state (press /)";
  box.setAttribute("aria-label", "Filter deployments");
  const shown = make("span", "");
  shown.setAttribute("role", "status");
  shown.className = "times";
  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
      const link = row.querySelector("a[href^='#']");
      const section = link && document.getElementById(link.getAttribute("href").slice(1));
      if (section) { section.hidden = row.hidden; }
    }
    const fine = document.querySelector(".fine");
    if (fine && words.length) { fine.open = true; }
    shown.textContent = words.length ? " " + count + " of " + rows.length : "";
  };
  box.addEventListener("input", filter);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === "/" && !typing) { event.preventDefault(); box.focus(); }
    if (event.key === "Escape" && event.target === box) { box.value = ""; filter(); }
  });
  place.append(box, shown);
})();
