/** `wirewatch backup`: brings a backup folder up to date, or writes one file. */
import { constants, getPriority, setPriority } from 'node:os';
import path from 'node:path';
import type { Command } from 'commander';
import { type WrittenBackup, writeBackup } from '../backup/write-backup.ts';
import { configOf } from './config.ts';
import { addDropOption, addExamples, commonOptions, integerValue } from './options.ts';
import { print, progressOfSteps } from './output.ts';

interface Options {
  readonly force?: boolean;
  readonly keepDays?: number;
}

export function register(command: Command): void {
  command
    .argument('<dest>', 'a folder, which is brought up to date, or a file that ends with .tar')
    .option('--force', 'replace a file that exists')
    .option(
      '--keep-days <days>',
      'how long branches and segments that are no longer needed are kept',
      integerValue(0, 36_500),
    )
    .action(async (dest: string, options: Options, self: Command) => {
      beGentle();
      const { json } = commonOptions(self);
      const config = configOf(self);
      const steps = progressOfSteps();
      try {
        const written = await writeBackup({
          data: config.dataFolder,
          drop: config.ingest.drop,
          target: path.resolve(dest),
          replace: options.force === true,
          keepDays: options.keepDays ?? config.backup.keep_days,
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
  addExamples(command, ['backup /backups/wirewatch', 'backup monday.tar --data /var/lib/wirewatch --json']);
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

function documentOf({ path: written_to, written, state, isNewBranch, deleted }: WrittenBackup) {
  const { at, log, access_log } = state;
  return {
    path: written_to,
    at,
    written,
    entries: log?.entry ?? 0,
    access_entries: access_log?.entry ?? 0,
    new_branch: isNewBranch,
    deleted,
  };
}

function textOf({ path: written_to, written, state, isNewBranch, deleted }: WrittenBackup): string {
  const shown = (count: number) => count.toLocaleString('en-US');
  return [
    `${written_to} holds the state of ${state.at}: ${shown(written)} bytes written.`,
    ...(isNewBranch ? ['It is a new branch: no other one there is of this installation.'] : []),
    ...deleted.map((name) => `Deleted after its time: ${name}`),
    '',
    'It holds the secret: protect it as you protect the data folder. The drop folder with its archive, the photos and the configuration are not in it; they are ordinary files.',
    '',
    `Check it with:  wirewatch verify ${written_to}`,
    `Restore it:     wirewatch restore ${written_to}`,
  ].join('\n');
}
