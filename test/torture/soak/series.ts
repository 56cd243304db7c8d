/** A series of samples: whether it grows, and its curve. */

export interface Series {
  /** The measured quantity, with its unit. */
  readonly name: string;
  /** One sample for each round, in order; a round does the same work on every machine. */
  readonly samples: readonly number[];
  /** The allowed growth from the first quarter to the last. */
  readonly growthMax: number;
}

const QUARTERS = 4;
/** This share of the samples at the start is ignored: caches fill, and code is compiled. */
const WARM_UP_SHARE = 1 / 8;

/** With fewer samples, the medians of quarters mean little. */
export const SAMPLES_MIN = 16;

/**
 * Growth from the first quarter to the last: the slope of the line through the medians of the quarters (least squares),
 * times the three steps between them. A single high sample changes nothing, and a leak cannot hide behind one.
 *
 * @throws Error for fewer than {@link SAMPLES_MIN} samples
 */
export function growthOf(samples: readonly number[]): number {
  if (samples.length < SAMPLES_MIN)
    throw new Error(`${samples.length} samples: expected ${SAMPLES_MIN} or more`);
  const warm = samples.slice(Math.ceil(samples.length * WARM_UP_SHARE));
  const medians = Array.from({ length: QUARTERS }, (_, quarter) =>
    medianOf(warm.slice((warm.length * quarter) / QUARTERS, (warm.length * (quarter + 1)) / QUARTERS)),
  );
  const middle = (QUARTERS - 1) / 2;
  const slope =
    medians.reduce((sum, median, at) => sum + (at - middle) * median, 0) /
    medians.reduce((sum, _, at) => sum + (at - middle) ** 2, 0);
  return slope * (QUARTERS - 1);
}

/** @returns one sentence if the series grows too much; otherwise null */
export function notFlat({ name, samples, growthMax }: Series): string | null {
  const growth = growthOf(samples);
  if (growth <= growthMax) return null;
  return `${name} grew by ${growth.toFixed(1)} from the first quarter to the last; at most ${growthMax.toFixed(1)} is allowed`;
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

const BLOCKS = '▁▂▃▄▅▆▇█';
const COLUMNS = 48;

/** A curve for a terminal: each column shows the highest of its samples, starting at zero. */
export function curveOf(samples: readonly number[]): string {
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
