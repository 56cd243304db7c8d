/** Notes that detections.db is damaged: the next start rebuilds it from its log. */
import { writeFileSync } from 'node:fs';
import type { DataFolder } from './folder.ts';

export function noteDamage({ damage }: Pick<DataFolder, 'damage'>, detail: string): void {
  try {
    writeFileSync(damage, `${detail}\n`, { mode: 0o600 });
  } catch {
    // The disk may be full. The damage will be found again.
  }
}
