"use strict";
// The page is complete without this script, which only adds copying, filtering and unfolding.
(function () {
  const make = (name, text, act) => {
    const element = document.createElement(name);
    element.textContent = text;
    if (act) { element.type = "button"; element.addEventListener("click", act); }
    return element;
  };

  // A trace is copied as it was logged, without the text that the page adds to it.
  const wordsOf = (source) => {
    const lines = [...source.querySelectorAll("[data-line]")].filter((line) => !line.closest(".again"));
    if (!lines.length) { return source.textContent; }
    return lines.map((line) => {
      const own = line.cloneNode(true);
      own.querySelectorAll(".mine").forEach((mark) => mark.remove());
      return (line.className.includes("thrown") ? "" : "\t") + own.textContent.trim();
    }).join("\n");
  };

  // In some browsers, navigator.clipboard is not available if the page is opened as a file.
  const copy = async (source) => {
    try {
      await navigator.clipboard.writeText(wordsOf(source));
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

  for (const source of document.querySelectorAll("[data-copy]")) {
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

  // A link to a section unfolds it; a link that begins with "filter" sets the filter.
  const unfoldTarget = () => {
    const target = document.getElementById(location.hash.slice(1));
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
  place.hidden = false;
  const rows = [...document.querySelectorAll("[data-row]")];
  const box = document.getElementById("filter-words");
  const signature = document.getElementById("filter-signature");
  const tones = [...place.querySelectorAll("input[name=tone]")];
  const shown = document.getElementById("filter-count");
  const fine = document.querySelector(".fine");

  const read = () => ({
    words: box.value.trim(),
    tones: tones.filter((tone) => tone.checked).map((tone) => tone.value),
    signature: signature ? signature.value : "",
  });
  const apply = () => {
    const wanted = read();
    const words = wanted.words.toLowerCase().split(/\s+/).filter(Boolean);
    const isOn = Boolean(words.length || wanted.tones.length || wanted.signature);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !(
        words.every((word) => text.includes(word))
        && (!wanted.tones.length || wanted.tones.some((tone) => row.dataset.tones.split(" ").includes(tone)))
        && (!wanted.signature || row.dataset.signatures.split(" ").includes(wanted.signature))
      );
      count += row.hidden ? 0 : 1;
      for (const link of row.querySelectorAll("a[href^='#i-']")) {
        const section = document.getElementById(link.getAttribute("href").slice(1));
        if (section) { section.hidden = row.hidden; }
      }
    }
    if (fine && isOn) { fine.open = true; }
    shown.textContent = isOn ? count + " of " + rows.length + " deployments" : "";
    return isOn ? wanted : null;
  };
  // The filter is part of the URL, so that the filtered page can be shared.
  const changed = () => {
    const wanted = apply();
    const query = new URLSearchParams();
    if (wanted && wanted.words) { query.set("words", wanted.words); }
    if (wanted && wanted.tones.length) { query.set("state", wanted.tones.join(" ")); }
    if (wanted && wanted.signature) { query.set("signature", wanted.signature); }
    history.replaceState(null, "", wanted ? "#filter?" + query : "#");
  };
  const fromAddress = () => {
    if (!location.hash.startsWith("#filter?")) { return; }
    const query = new URLSearchParams(location.hash.slice("#filter?".length));
    box.value = query.get("words") || "";
    const states = (query.get("state") || "").split(" ");
    tones.forEach((tone) => { tone.checked = states.includes(tone.value); });
    if (signature) { signature.value = query.get("signature") || ""; }
    apply();
  };
  box.addEventListener("input", changed);
  if (signature) { signature.addEventListener("change", changed); }
  tones.forEach((tone) => tone.addEventListener("change", changed));
  window.addEventListener("hashchange", fromAddress);
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === "/" && !typing) { event.preventDefault(); box.focus(); }
    if (event.key === "Escape" && event.target === box) { box.value = ""; changed(); }
  });
  fromAddress();
})();
