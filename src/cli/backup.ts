/** `wirewatch backup`: all that an installation cannot do without, in one file. */
import { constants, getPriority, setPriority } from 'node:os';
import path from 'node:path';
import type { Command } from 'commander';
import { type WrittenBackup, writeBackup } from '../backup/write-backup.ts';
import { configOf } from './config.ts';
import { addDropOption, addExamples, commonOptions } from './options.ts';
import { print, progressOfSteps } from './output.ts';

export function register(command: Command): void {
  command
    .argument('<file>', 'file to write, such as /backups/monday.tar')
    .option('--force', 'replace a file that is there')
    .action(async (file: string, options: { force?: boolean }, self: Command) => {
      beGentle();
      const { json } = commonOptions(self);
      const config = configOf(self);
      const steps = progressOfSteps();
      try {
        const written = await writeBackup({
          data: config.dataFolder,
          drop: config.ingest.drop,
          target: path.resolve(file),
          replace: options.force === true,
          now: Date.now,
          onProgress: steps.update,
        });
        steps.end();
        print(documentOf(written), { json, text: () => textOf(written) });
      } finally {
        steps.end();
      }
    });
  addDropOption(command);
  addExamples(command, ['backup /backups/monday.tar', 'backup monday.tar --data /var/lib/wirewatch --json']);
}

/** An appliance on this machine goes first. */
export function beGentle(): void {
  try {
    // A scheduled one was given a lower priority than this, and keeps it.
    const { PRIORITY_BELOW_NORMAL } = constants.priority;
    if (getPriority() < PRIORITY_BELOW_NORMAL) setPriority(PRIORITY_BELOW_NORMAL);
  } catch {
    // Then it runs as it is.
  }
}

function documentOf({ path: file, bytes, manifest }: WrittenBackup) {
  const { created_at, journal, counts } = manifest;
  return { file, bytes, created_at, ...counts, journal_bytes: journal?.bytes ?? 0 };
}

function textOf({ path: file, bytes, manifest }: WrittenBackup): string {
  const { detections, stream_rows, keys } = manifest.counts;
  const shown = (count: number) => count.toLocaleString('en-US');
  return [
    `Wrote ${file}, ${shown(bytes)} bytes: the state of ${manifest.created_at}.`,
    '',
    `${shown(detections)} detections, ${shown(stream_rows)} rows of the stream, ${shown(keys)} keys. It holds the secret: guard it as you guard the data folder.`,
    `The drop folder with its archive, photos and the configuration are not in it; they are plain files.`,
    '',
    `Check it with:  wirewatch verify ${file}`,
    `Put it back:    wirewatch restore ${file}`,
  ].join('\n');
}
