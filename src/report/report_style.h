// How the report looks.
#pragma once

namespace tsdp::exporting {

inline constexpr const char* style_sheet = R"(
:root{color-scheme:light dark;--page:#eef0f3;--card:#ffffff;--ink:#1c1e21;--faint:#52575e;--line:#c9cdd3;--accent:#0067a8;--warn:#fff1e8;--warn-ink:#7a2500;--warn-line:#c44e00}
@media screen and (prefers-color-scheme:dark){:root{--page:#0c0d10;--card:#15171b;--ink:#eceef1;--faint:#a9afb8;--line:#3a3f47;--accent:#5cb8f0;--warn:#2c1a10;--warn-ink:#ffc9a8;--warn-line:#ff8c4d}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;overflow-wrap:break-word}
main,header,footer{max-width:72rem;margin:0 auto;padding:0 1rem}
h1{font-size:1.7rem;line-height:1.2;margin:1rem 0 .3rem}
h2{font-size:1.3rem;line-height:1.25;margin:0 0 .5rem}
h3{font-size:1rem;margin:0;color:var(--ink)}
p+h3,.exact+h3{margin-top:1.2rem}
p,ul{margin:.5rem 0;max-width:46rem}
ul{padding-left:1.3rem}
li{margin:.3rem 0}
.banner{background:var(--warn);color:var(--warn-ink);border:2px solid var(--warn-line);border-radius:.5rem;padding:.5rem .8rem;margin:1rem 0 0;font-weight:600;max-width:none}
.faint,figcaption,footer{color:var(--faint)}
.faint,figcaption{font-size:.9em}
section{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem;margin:1rem 0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,14rem),1fr));gap:.75rem;margin:1rem 0;padding:0;list-style:none;max-width:none}
.tiles li{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.6rem .8rem;margin:0}
.tiles b{display:block;font-size:1.5rem;line-height:1.3}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19.5rem),1fr));gap:1rem}
.grid>*{min-width:0}
.beside{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,24rem);gap:1.5rem;align-items:start}
@media (max-width:70rem){.beside{grid-template-columns:minmax(0,1fr)}}
figure{margin:0;max-width:26rem}
figcaption{margin-bottom:.3rem}
.tsdp-plot{display:block;width:100%;height:auto}
.tsdp-plot.sample{display:inline-block;width:38px;height:16px;vertical-align:-2px;margin-right:.4rem}
.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.1rem 1.2rem;max-width:none}
.scroll{overflow-x:auto;margin:.5rem 0;border:1px solid var(--line);border-radius:.4rem}
.scroll{background:linear-gradient(to right,var(--card) 40%,transparent) 0 0/2rem 100% no-repeat local,linear-gradient(to left,var(--card) 40%,transparent) 100% 0/2rem 100% no-repeat local,linear-gradient(to right,#8886,transparent) 0 0/.7rem 100% no-repeat,linear-gradient(to left,#8886,transparent) 100% 0/.7rem 100% no-repeat}
.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.4rem .7rem;color:var(--faint);font-size:.9em}
th,td{padding:.35rem .7rem;text-align:right;border-top:1px solid var(--line);vertical-align:top}
th{font-weight:600}
thead th{border-top:0}
th:first-child,td:first-child{text-align:left}
.facts td{text-align:left}
.facts th{white-space:nowrap;width:1%}
.facts tr:first-child>*{border-top:0}
details{margin:.3rem 0 0}
summary{cursor:pointer;color:var(--accent)}
details table{font-size:.9em}
.exact{border-left:4px solid var(--accent);padding:.1rem 0 .1rem .8rem}
@media screen and (max-width:48rem){.scores,.scores caption,.scores tbody,.scores tr,.scores th{display:block}.scores thead{position:absolute;clip-path:inset(50%)}.scores td{display:flex;justify-content:space-between;border-top:0;padding:.1rem .7rem}.scores td::before{content:attr(data-label);color:var(--faint)}.scores th{padding-bottom:.1rem}.scores tr{padding-bottom:.3rem}}
@media screen and (max-width:30rem){.facts th{white-space:normal}.facts th,.facts td{padding:.3rem .4rem}}
@media (max-width:30rem){main,header,footer{padding:0 .6rem}section{padding:.7rem .6rem}h1{font-size:1.4rem}}
@page{margin:14mm}
@media print{body{background:#fff;font-size:14px}section{padding:.8rem;box-decoration-break:clone}section,.tiles li{border-color:#999}figure,.tiles,.banner,tr,.exact{break-inside:avoid}h2,h3{break-after:avoid}.scroll{overflow:visible}th,td{padding:.3rem .5rem}details{display:none}main,header,footer{max-width:none;padding:0}p,ul{max-width:none}.grid{grid-template-columns:repeat(2,minmax(0,1fr))}.tiles{grid-template-columns:repeat(3,minmax(0,1fr))}.tiles b{font-size:1.2rem}.beside{grid-template-columns:minmax(0,1fr);gap:.5rem}.beside figure{max-width:22rem}}
)";

}  // namespace tsdp::exporting
