/** The note that detections.db is damaged: the next start makes it anew from its log. */
import { writeFileSync } from 'node:fs';
import type { DataFolder } from './folder.ts';

export function noteDamage({ damage }: Pick<DataFolder, 'damage'>, detail: string): void {
  try {
    writeFileSync(damage, `${detail}\n`, { mode: 0o600 });
  } catch {
    // On a full disk: it is found again.
  }
}
