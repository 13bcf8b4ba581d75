"use strict";
// Draws the figures in the colours of the page, and again when it turns light or dark. A figure in a fold that nobody
// has opened has no size: it is drawn when it is seen.
(() => {
  const palette = JSON.parse(document.getElementById("palette").textContent);
  const hovers = matchMedia("(hover: hover)").matches;
  const config = {
    responsive: true,
    displaylogo: false,
    displayModeBar: hovers && "hover", // plotly would always show it where nothing hovers
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };

  // From the colours that figures come with, those of a light page, to what the style sheet says now.
  function colours() {
    const style = getComputedStyle(document.documentElement);
    return new Map(Object.entries(palette).map(([name, [light]]) => [light, style.getPropertyValue(`--${name}`).trim()]));
  }

  function painted(value, to) {
    if (typeof value === "string") return to.get(value) ?? value;
    if (Array.isArray(value)) return value.map((one) => painted(one, to));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, painted(one, to)]));
  }

  async function draw(plot) {
    const { data, layout } = painted(JSON.parse(plot.nextElementSibling.textContent), colours());
    if (!hovers) layout.dragmode = false; // a finger on a figure scrolls the page
    await Plotly.react(plot, data, layout, config);
    const legend = plot.querySelector(".legend");
    const names = legend ? legend.getBoundingClientRect().height : 0;
    await Plotly.relayout(plot, { height: layout.height + names }); // the legend takes nothing from the picture
  }

  function drawSeen(within) {
    for (const plot of within.querySelectorAll(".plot")) if (plot.checkVisibility()) draw(plot);
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawSeen(document));
  for (const fold of document.querySelectorAll("details")) fold.addEventListener("toggle", () => drawSeen(fold));
  drawSeen(document);
})();
