/**
 * The thread of one scheduled backup: writes it, then opens it again and looks through what comes out. It ends with
 * its answer.
 */
import { constants, setPriority } from 'node:os';
import type { MessagePort } from 'node:worker_threads';
import { Refused } from '../refused.ts';
import { verifyBackup } from './verify-backup.ts';
import { writeBackup } from './write-backup.ts';

export interface BackupThreadSettings {
  /** The data folder. */
  readonly data: string;
  readonly target: string;
}

export type FromBackup =
  | {
      readonly kind: 'written';
      readonly bytes: number;
      readonly detections: number;
      /** What was found when it was opened again, in words; empty when all is well. */
      readonly findings: readonly string[];
    }
  /** Nothing was written. */
  | { readonly kind: 'failed'; readonly detail: string };

export async function runBackup(port: MessagePort, { data, target }: BackupThreadSettings): Promise<void> {
  giveWay();
  const answer = await makeAndOpen(data, target);
  port.postMessage(answer);
  port.close();
}

async function makeAndOpen(data: string, target: string): Promise<FromBackup> {
  try {
    const onProgress = () => {};
    const { bytes, manifest } = await writeBackup({
      data,
      target,
      replace: false,
      now: Date.now,
      onProgress,
    });
    const findings = (await verifyBackup(target, onProgress)).list();
    return {
      kind: 'written',
      bytes,
      detections: manifest.counts.detections,
      findings: findings.map(({ check, detail }) => `${check}: ${detail}`),
    };
  } catch (error) {
    if (error instanceof Refused) return { kind: 'failed', detail: error.message };
    throw error;
  }
}

/** Linux gives each thread a priority of its own; elsewhere it would be that of the whole appliance. */
function giveWay(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(constants.priority.PRIORITY_LOW);
  } catch {
    // Then it runs as it is.
  }
}
