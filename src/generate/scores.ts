/** Match strengths over all bands, their exact thresholds among them (contract: Detection, `strength.band`). */
import type { ContentType } from '../detection/content-type.ts';
import type { Prng } from './prng.ts';

const SCORE_MAX: Record<ContentType, number> = { text: 100, image: 99 };
const EXACT: Record<ContentType, readonly number[]> = {
  text: [0, 25, 50, 75, 95, 100],
  image: [0, 30, 60, 99],
};
/** Just below a threshold, and where rounding would lift a score over one. */
const CLOSE: Record<ContentType, readonly number[]> = {
  text: [0.1, 24.99, 24.5, 49.5, 49.999, 74.999, 94.9, 95.01, 99.9],
  image: [0.1, 29.99, 29.5, 59.5, 59.999, 60.01, 98.99],
};

export function drawScore(prng: Prng, contentType: ContentType): number {
  const kind = prng.below(100);
  if (kind < 6) return prng.pick(EXACT[contentType]);
  if (kind < 10) return prng.pick(CLOSE[contentType]);
  const score = prng.unit() * SCORE_MAX[contentType];
  return kind < 30 ? Math.round(score) : kind < 80 ? rounded(score, 10) : rounded(score, 1000);
}

/**
 * The score after it has changed `phase` times (0 to 3): another one each time, within the range.
 *
 * @param drift what is peculiar to this detection, in [0, 1)
 */
export function laterScore(
  firstScore: number,
  drift: number,
  phase: number,
  contentType: ContentType,
): number {
  if (phase === 0) return firstScore;
  const change = 1 + 2.5 * drift + 4 * phase;
  // Towards the middle and beyond, so that no end of the range swallows the change.
  return rounded(firstScore < SCORE_MAX[contentType] / 2 ? firstScore + change : firstScore - change, 1000);
}

function rounded(score: number, steps: number): number {
  return Math.round(score * steps) / steps;
}
