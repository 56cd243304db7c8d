/** Plots series of samples: as an SVG, and as one line of text for a terminal. */
import type { Series } from './flat.ts';

const WIDTH = 800;
const PANEL_HEIGHT = 160;
const MARGIN = 30;
const BLOCKS = '▁▂▃▄▅▆▇█';
const COLUMNS = 48;

/** One panel for each series. Each starts at zero, so that slopes are not exaggerated. */
export function svgOf(series: readonly Series[]): string {
  const panels = series.map(({ name, samples }, index) => {
    const most = Math.max(1, ...samples);
    const top = index * PANEL_HEIGHT + MARGIN;
    const bottom = (index + 1) * PANEL_HEIGHT - 10;
    const points = samples.map((sample, at) => {
      const x = MARGIN + (at / Math.max(1, samples.length - 1)) * (WIDTH - 2 * MARGIN);
      return `${x.toFixed(1)},${(bottom - (sample / most) * (bottom - top)).toFixed(1)}`;
    });
    return [
      `<text x="${MARGIN}" y="${top - 8}">${name}: at most ${most.toFixed(1)}; ${samples.length} rounds</text>`,
      `<path d="M${MARGIN} ${bottom}H${WIDTH - MARGIN}" stroke="#999"/>`,
      `<polyline points="${points.join(' ')}" fill="none" stroke="#036"/>`,
    ].join('\n');
  });
  const height = series.length * PANEL_HEIGHT;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">\n${panels.join('\n')}\n</svg>\n`;
}

/** Each column shows the highest of its samples, starting at zero. */
export function textOf(samples: readonly number[]): string {
  const columns = Math.min(COLUMNS, samples.length);
  const most = Math.max(1, ...samples);
  return Array.from({ length: columns }, (_, column) => {
    const part = samples.slice(
      Math.floor((samples.length * column) / columns),
      Math.floor((samples.length * (column + 1)) / columns),
    );
    return BLOCKS[Math.min(BLOCKS.length - 1, Math.floor((Math.max(...part) / most) * BLOCKS.length))];
  }).join('');
}
