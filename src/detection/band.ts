/** Bands of match strength (contract: Detection, `strength.band`). */
import type { ContentType } from './content-type.ts';

/** In order of strength; the same word is the same step for both content types, an index into this list. */
export const BANDS = ['off', 'low', 'medium', 'high', 'max'] as const;
export type Band = (typeof BANDS)[number];

/** A band begins at its threshold, judged on the unrounded score. */
const TEXT_THRESHOLDS = [25, 50, 75, 95];
const IMAGE_THRESHOLDS = [30, 60];

/** @returns the step: 0 (`off`) to 4 (`max`) for text, 1 (`low`) to 3 (`high`) for images */
export function bandStep(contentType: ContentType, score: number): number {
  const thresholds = contentType === 'image' ? IMAGE_THRESHOLDS : TEXT_THRESHOLDS;
  const passed = thresholds.filter((threshold) => score >= threshold).length;
  return contentType === 'image' ? passed + 1 : passed;
}

export function isBand(value: string): value is Band {
  return (BANDS as readonly string[]).includes(value);
}
