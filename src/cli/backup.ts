/** `wirewatch backup`: updates a backup folder. */

import { constants, getPriority, setPriority } from 'node:os';
import path from 'node:path';
import { type WrittenBackup, writeBackup } from '../backup/write-backup.ts';
import { integer } from '../config/option-values.ts';
import { counted } from '../counted.ts';
import { anyText, required, value } from '../operations/member.ts';
import { pasted } from '../setup/shell.ts';
import { joined } from '../text-layout.ts';
import { defineCommand } from './command.ts';
import { configOf, installationOptions } from './installation.ts';
import { DROP_OPTION } from './options.ts';
import { createProgress } from './output.ts';

export const register = defineCommand({
  members: {
    backup_folder: required(value(anyText, { hint: 'the backup folder to create or update' })),
    keep_days: value(integer(0, 36_500), {
      hint: 'how long to keep files in the backup folder that are no longer needed (default: the setting [backup] keep_days)',
      placeholder: 'days',
    }),
  },
  operands: ['backup_folder'],
  options: [DROP_OPTION],
  examples: ['backup /backups/wirewatch', 'backup /backups/wirewatch --data /var/lib/wirewatch --json'],
  async run({ backup_folder: folder, keep_days }, self) {
    lowerPriority();
    const config = configOf(self);
    const target = path.resolve(folder);
    using progress = createProgress();
    const backup = writeBackup({
      data: config.dataFolder,
      drop: config.ingest.drop,
      target,
      keepDays: keep_days ?? config.backup.keep_days,
      now: Date.now,
      onProgress: progress.update,
    });
    return {
      value: documentOf(backup),
      text: () => textOf(backup, target, installationOptions(self, config)),
    };
  },
});

/** Lowers the priority of this process: a running Wirewatch comes first. */
export function lowerPriority(): void {
  try {
    // A scheduled backup already has a lower priority, and keeps it.
    const { PRIORITY_BELOW_NORMAL } = constants.priority;
    if (getPriority() < PRIORITY_BELOW_NORMAL) setPriority(PRIORITY_BELOW_NORMAL);
  } catch {
    // Not permitted: the priority stays unchanged.
  }
}

function documentOf({ path: written_to, written, state, isNewBranch, deleted }: WrittenBackup) {
  const { at, log, access } = state;
  return {
    path: written_to,
    at,
    written,
    entries: log?.entry ?? 0,
    access_changes: access.change,
    new_branch: isNewBranch,
    deleted,
  };
}

/** @param target for verify and restore, which find the newest branch in it */
function textOf(
  { path: written_to, written, state, isNewBranch, deleted }: WrittenBackup,
  target: string,
  installation: string,
): string {
  return joined('\n', [
    `${written_to} now contains the state of ${state.at}. ${counted(written, 'byte')} written.`,
    isNewBranch &&
      'This is a new branch in the folder: none of the existing ones belongs to this installation.',
    ...deleted.map((name) => `Deleted, past keep_days: ${name}`),
    '',
    'The backup contains the secret of the installation: protect it like the data folder. It does not contain the drop folder and its archive, the photos, or the configuration file: copy those yourself.',
    '',
    `Check it:                    wirewatch verify ${pasted(target)}`,
    `Restore it on this machine:  wirewatch restore ${pasted(target)} --replace${installation}`,
    '                             (stop Wirewatch first; the existing files are moved aside, not deleted)',
    'Restore it on another one:   copy the backup there, then run: wirewatch restore BACKUP',
  ]);
}
