// Draws the diagrams of a page; pages without one do not load the 3 MB that this takes.
document.addEventListener("DOMContentLoaded", () => {
  if (!document.querySelector("pre.mermaid")) return;
  const script = document.createElement("script");
  script.src = document.querySelector("script[src*='diagrams.js']").src.replace(/diagrams\.js.*/, "mermaid.min.js");
  script.onload = () => {
    const isDark = document.documentElement.dataset.theme === "dark";
    mermaid.initialize({ startOnLoad: false, theme: isDark ? "dark" : "neutral" });
    mermaid.run({ querySelector: "pre.mermaid" });
  };
  document.head.append(script);
});
