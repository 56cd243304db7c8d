/** What was measured, as a picture: a bar for each figure, by how it stands to what it is compared with. */
import { type MeasuredFigure, type MeasuredGroup, type MeasuredGroups, shown } from './measured.ts';

const WIDTH = 920;
const LABEL = 430;
const BAR = 300;
const ROW = 26;
const HEAD = 46;

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 15px; }
  .note, .value { fill: #59636e; }
  .bar { fill: #2f6fb2; }
  .less { fill: #b35900; }
  .one { stroke: #59636e; stroke-dasharray: 3 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .note, .value { fill: #9198a1; }
    .bar { fill: #4a94e0; }
    .less { fill: #d98532; }
    .one { stroke: #9198a1; }
  }`;

const PANELS: readonly (readonly [keyof MeasuredGroups, title: string, note: string])[] = [
  [
    'limits',
    'Share of what the machine could do',
    'dashed: a bare server, or SQLite alone, that does the same',
  ],
  ['earlier', 'Against an earlier version', 'dashed: as fast, as small as it was'],
  ['growth', 'Against that version, with millions of rows', 'dashed: as fast, as small as it was'],
  ['peers', 'Pages of 1,000 rows, against other programs', 'dashed: as fast as the other one'],
];

/** @returns an SVG */
export function chart(groups: MeasuredGroups): string {
  let y = 0;
  const panels: string[] = [];
  for (const [name, title, note] of PANELS) {
    const group = groups[name];
    if (group === undefined) continue;
    const figures = drawn(group.figures);
    panels.push(`<g transform="translate(0 ${y})">${panel(title, note, group, figures)}</g>`);
    y += HEAD + figures.length * ROW + 24;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" role="img" aria-label="What npm run bench measured">
<style>${STYLE}
</style>
${panels.join('\n')}
</svg>
`;
}

/** One bar for each path: how much processor time it took, and waits that a machine's other work makes, stay in the text. */
function drawn(figures: readonly MeasuredFigure[]): MeasuredFigure[] {
  const first = new Set<string>();
  return figures.filter(({ what, ratio }) => {
    const isDrawn = ratio !== null && !/^(processor time|light request)/.test(what) && !first.has(what);
    first.add(what);
    return isDrawn;
  });
}

function panel(
  title: string,
  note: string,
  group: MeasuredGroup,
  figures: readonly MeasuredFigure[],
): string {
  const most = Math.max(1, ...figures.map(({ ratio }) => ratio ?? 0));
  const one = LABEL + BAR / most;
  const rows = figures.map((figure, index) => {
    const y = HEAD + index * ROW;
    const ratio = figure.ratio ?? 0;
    const width = Math.max(1, (BAR * ratio) / most);
    const against = figure.against === undefined ? '' : `, against ${figure.against}`;
    const value = `${ratio.toFixed(2)}  (${shown(figure.now)} ${figure.unit})`;
    return `<g><title>${escaped(figure.what + against)}</title>
<text x="${LABEL - 10}" y="${y + 14}" text-anchor="end">${escaped(figure.what)}</text>
<rect class="${ratio < 1 && group.how.includes('--against') ? 'less' : 'bar'}" x="${LABEL}" y="${y + 2}" width="${width.toFixed(1)}" height="16" rx="2"/>
<text class="value" x="${Math.max(LABEL + width + 8, width < one - LABEL ? one + 8 : 0).toFixed(1)}" y="${y + 14}">${escaped(value)}</text></g>`;
  });
  const foot = HEAD + figures.length * ROW;
  return `<text class="title" x="0" y="16">${escaped(title)}</text>
<text class="note" x="0" y="34">${escaped(`${note}; ${group.how}, ${group.day}`)}</text>
${rows.join('\n')}
<line class="one" x1="${one.toFixed(1)}" x2="${one.toFixed(1)}" y1="${HEAD - 4}" y2="${foot}"/>`;
}

function escaped(text: string): string {
  return text.replace(/[<&>]/g, (character) => `&#${character.charCodeAt(0)};`);
}
