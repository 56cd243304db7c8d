/** Bands of match strength. */
import type { ContentType } from './content-type.ts';

/** In order of strength; the same word is the same step for both content types, an index into this list. */
export const BANDS = ['off', 'low', 'medium', 'high', 'max'] as const;
export type Band = (typeof BANDS)[number];

/** The lowest band, and the unrounded scores from which each of the next ones begins. */
export const SCALES: Readonly<Record<ContentType, { lowest: Band; thresholds: readonly number[] }>> = {
  text: { lowest: 'off', thresholds: [25, 50, 75, 95] },
  image: { lowest: 'low', thresholds: [30, 60] },
};

/** @returns the step: 0 (`off`) to 4 (`max`) for text, 1 (`low`) to 3 (`high`) for images */
export function bandStep(contentType: ContentType, score: number): number {
  const { lowest, thresholds } = SCALES[contentType];
  return BANDS.indexOf(lowest) + thresholds.filter((threshold) => score >= threshold).length;
}

/** The bands that a content type has, in order of strength. */
export function bandsOf(contentType: ContentType): readonly Band[] {
  const { lowest, thresholds } = SCALES[contentType];
  const first = BANDS.indexOf(lowest);
  return BANDS.slice(first, first + thresholds.length + 1);
}
