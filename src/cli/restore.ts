/** `wirewatch restore`: puts a backup in place. */
import path from 'node:path';
import type { Command } from 'commander';
import { type Restored, restore } from '../backup/restore.ts';
import { configOf } from './config.ts';
import { addDropOption, addExamples, commonOptions } from './options.ts';
import { print, progressOfSteps } from './output.ts';

const MISSING_SHOWN_MAX = 10;

export function register(command: Command): void {
  command
    .argument('<file>', 'the backup')
    .option('--replace', 'move what the data folder holds aside, and put the backup in its place')
    .action(async (file: string, options: { replace?: boolean }, self: Command) => {
      const config = configOf(self);
      const { json } = commonOptions(self);
      const steps = progressOfSteps();
      try {
        const outcome = await restore({
          file: path.resolve(file),
          data: config.dataFolder,
          replace: options.replace === true,
          drop: config.ingest.drop,
          now: Date.now,
          onProgress: steps.update,
        });
        steps.end();
        if (outcome.kind === 'completed') {
          const { aside } = outcome;
          print(
            { completed_earlier_restore: true, data: config.dataFolder, replaced: aside },
            {
              json,
              text: `An earlier restore into ${config.dataFolder} had been cut off. It is complete now, and nothing else was done.${replacedText(aside)}\n\nTo restore ${file} instead, run the command again with --replace.`,
            },
          );
          return;
        }
        print(documentOf(config.dataFolder, outcome), {
          json,
          text: () => textOf(config.dataFolder, outcome),
        });
      } finally {
        steps.end();
      }
    });
  addDropOption(command);
  addExamples(command, [
    'restore /backups/monday.tar',
    'restore /backups/monday.tar --replace --data /var/lib/wirewatch',
  ]);
}

function documentOf(data: string, { manifest, journal, outlook, aside }: Restored) {
  const { created_at, counts } = manifest;
  return {
    completed_earlier_restore: false,
    data,
    state_of: created_at,
    ...counts,
    replaced: aside,
    journal: journal.kind,
    ...outlook,
  };
}

function textOf(data: string, { manifest, journal, outlook, aside }: Restored): string {
  const shown = (count: number) => count.toLocaleString('en-US');
  const files = outlook.files_to_read;
  const since =
    journal.kind === 'continued'
      ? `${files === 0 ? 'no file was' : files === 1 ? 'one file was' : `${shown(files)} files were`} applied since the backup, as the journal that was there tells${files === 0 ? '' : ': read again from archive/, in the same order'}`
      : 'files in archive/ that the backup does not know are read again';
  const versions =
    outlook.versions === 'same'
      ? 'Versions come out as clients have seen them, and their cursors go on.'
      : `Versions are raised by 1,000, once, so that clients keep nothing that is older: ${outlook.reasons.join('; ')}. Cursors go on.`;
  const missing = outlook.files_missing;
  return [
    `Restored the state of ${manifest.created_at} into ${data}: ${shown(manifest.counts.detections)} detections, ${shown(manifest.counts.keys)} keys.${replacedText(aside)}`,
    `At the next start: ${since}.\n${versions}`,
    ...(missing.length === 0 ? [] : [missingText(missing)]),
    'Start the appliance with: wirewatch serve',
  ].join('\n\n');
}

function replacedText(aside: string | null): string {
  return aside === null ? '' : `\nWhat was there before lies in ${aside}. Delete it when all is well.`;
}

function missingText(missing: readonly string[]): string {
  const shown = missing.slice(0, MISSING_SHOWN_MAX).map((name) => `  ${name}`);
  const more = missing.length - shown.length;
  return [
    'These are not in the drop folder. Put them back before the start if you have them:',
    ...shown,
    ...(more > 0 ? [`  and ${more} more`] : []),
  ].join('\n');
}
