/** `wirewatch backup`: updates a backup folder, or writes one file. */
import { constants, getPriority, setPriority } from 'node:os';
import path from 'node:path';
import type { Command } from 'commander';
import { type WrittenBackup, writeBackup } from '../backup/write-backup.ts';
import { counted } from '../counted.ts';
import { pasted } from '../setup/shell.ts';
import { configOf, installationOptions } from './config.ts';
import { addDropOption, addExamples, commonOptions, integerValue } from './options.ts';
import { print, progressOfSteps } from './output.ts';

interface Options {
  readonly force?: boolean;
  readonly keepDays?: number;
}

export function register(command: Command): void {
  command
    .argument('<backup-folder>', 'a backup folder to create or update, or a file name that ends with .tar')
    .option('--force', 'overwrite an existing .tar file')
    .option(
      '--keep-days <days>',
      'how long to keep files in the backup folder that are no longer needed (default: the setting [backup] keep_days)',
      integerValue(0, 36_500),
    )
    .action(async (dest: string, options: Options, self: Command) => {
      beGentle();
      const { json } = commonOptions(self);
      const config = configOf(self);
      const steps = progressOfSteps();
      const target = path.resolve(dest);
      try {
        const written = await writeBackup({
          data: config.dataFolder,
          drop: config.ingest.drop,
          target,
          replace: options.force === true,
          keepDays: options.keepDays ?? config.backup.keep_days,
          now: Date.now,
          onProgress: steps.update,
        });
        steps.end();
        print(documentOf(written), {
          json,
          text: () => textOf(written, target, installationOptions(self, config)),
        });
      } finally {
        steps.end();
      }
    });
  addDropOption(command);
  addExamples(command, ['backup /backups/wirewatch', 'backup monday.tar --data /var/lib/wirewatch --json']);
}

/** Lowers the priority of this process: a running appliance comes first. */
export function beGentle(): void {
  try {
    // A scheduled backup already has a lower priority, and keeps it.
    const { PRIORITY_BELOW_NORMAL } = constants.priority;
    if (getPriority() < PRIORITY_BELOW_NORMAL) setPriority(PRIORITY_BELOW_NORMAL);
  } catch {
    // Then the priority stays as it is.
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

/** @param target what verify and restore are given: of a backup folder, they find the newest branch */
function textOf(
  { path: written_to, written, state, isNewBranch, deleted }: WrittenBackup,
  target: string,
  installation: string,
): string {
  return [
    `${written_to} now contains the state of ${state.at}. ${counted(written, 'byte')} written.`,
    ...(isNewBranch
      ? ['This is a new branch in the folder: none of the existing ones belongs to this installation.']
      : []),
    ...deleted.map((name) => `Deleted, past keep_days: ${name}`),
    '',
    'The backup contains the secret of the installation: protect it like the data folder. It does not contain the drop folder and its archive, the photos, or the configuration file: copy those yourself.',
    '',
    `Check it:                    wirewatch verify ${pasted(target)}`,
    `Restore it on this machine:  wirewatch restore ${pasted(target)} --replace${installation}`,
    '                             (stop Wirewatch first; the existing files are moved aside, not deleted)',
    'Restore it on another one:   copy the backup there, then run: wirewatch restore BACKUP',
  ].join('\n');
}
