// The style sheet of a report: light or dark like the reader's system, with a colour-blind-safe palette.
#pragma once

namespace hstu {

inline constexpr const char* kReportStyle = R"css(
:root { --ink: #1b2430; --soft: #657080; --rule: #dfe3e8; --ground: #fff; --panel: #f6f7f9;
  --c0: #0b62d6; --c1: #d1600a; --c2: #07875b; --c3: #8a3ffc; --c4: #b8860b; --c5: #5b6673; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --soft: #98a3b3; --rule: #333b47; --ground: #12161c; --panel: #1a2029;
    --c0: #6aa9ff; --c1: #ff9d5c; --c2: #3ecf9a; --c3: #c39bff; --c4: #e5c04b; --c5: #a3afbd; } }
body { margin: 2rem auto; max-width: 1100px; padding: 0 1rem; overflow-wrap: break-word; color: var(--ink); background: var(--ground);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 1rem; } h2 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: .8rem; }
.tiles div { background: var(--panel); border-radius: 6px; padding: .7rem .9rem; }
.tiles span, .tiles small { display: block; color: var(--soft); font-size: .85rem; }
.tiles b { font-size: 1.35rem; overflow-wrap: normal; font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(430px, 100%), 1fr)); gap: 0 2rem; }
.charts > * { min-width: 0; } .wide { overflow-x: auto; }
.reference { fill: none; stroke: var(--soft); } svg text:not([class]) { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg { width: 100%; display: block; } svg.key { width: 24px; height: 8px; display: inline-block; margin-right: .4em; }
.grid { stroke: var(--rule); } .tick { fill: var(--soft); font: 12px system-ui, sans-serif; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; } .dashed { stroke-dasharray: 6 5; }
.dotted { stroke-dasharray: 2 4; }
.line.s0 { stroke: var(--c0); } .line.s1 { stroke: var(--c1); } .line.s2 { stroke: var(--c2); }
.line.s3 { stroke: var(--c3); } .line.s4 { stroke: var(--c4); } .line.s5 { stroke: var(--c5); }
.mark.s0 { fill: var(--c0); } .mark.s1 { fill: var(--c1); } .mark.s2 { fill: var(--c2); }
.mark.s3 { fill: var(--c3); } .mark.s4 { fill: var(--c4); } .mark.s5 { fill: var(--c5); }
.leader { fill: none; stroke: var(--soft); }
.legend { margin: .2rem 0 0 58px; color: var(--soft); font-size: .85rem; } .legend span { display: inline-block; max-width: 100%; margin-right: 1.2em; overflow-wrap: anywhere; }
.legend b { color: var(--ink); font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .25rem .9rem; border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { text-align: left; padding-left: 0; } th { color: var(--soft); font-weight: 500; }
.bar { display: flex; gap: .6rem; margin: .25rem 0; } .bar span { width: 7rem; }
.bar i { background: var(--c0); height: .9rem; border-radius: 2px; } .bar small { color: var(--soft); }
.words th, .words td { text-align: left; overflow-wrap: anywhere; }
pre { background: var(--panel); padding: 1rem; border-radius: 6px; overflow-x: auto; font-size: .85rem; }
@media (max-width: 520px) { .legend { margin-left: 0; } th, td { padding: .25rem .5rem; } }
)css";

}  // namespace hstu
