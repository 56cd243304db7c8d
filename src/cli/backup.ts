/** `wirewatch backup`: updates a backup folder. */
import { constants, getPriority, setPriority } from 'node:os';
import path from 'node:path';
import { type WrittenBackup, writeBackup } from '../backup/write-backup.ts';
import { counted } from '../counted.ts';
import { anyText, required, value } from '../operations/member.ts';
import { pasted } from '../setup/shell.ts';
import { joined } from '../text-layout.ts';
import { defineCommand } from './command.ts';
import { configOf, installationOptions } from './installation.ts';
import { DROP_OPTION } from './options.ts';
import { createProgress } from './output.ts';

export const register = defineCommand({
  members: { backup_folder: required(value(anyText, { hint: 'the backup folder to create or update' })) },
  operands: ['backup_folder'],
  options: [DROP_OPTION],
  examples: ['backup /backups/wirewatch', 'backup /backups/wirewatch --data /var/lib/wirewatch --json'],
  async run({ backup_folder: folder }, self) {
    lowerPriority();
    const config = configOf(self);
    const target = path.resolve(folder);
    using progress = createProgress();
    const backup = writeBackup({
      data: config.dataFolder,
      drop: config.ingest.drop,
      target,
      now: Date.now,
      onProgress: progress.update,
    });
    const { written, state } = backup;
    const { at, log, access } = state;
    return {
      value: { path: target, at, written, entries: log?.entry ?? 0, access_changes: access.change },
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

/** @param target for verify and restore */
function textOf({ written, state }: WrittenBackup, target: string, installation: string): string {
  return joined('\n', [
    `${target} now contains the state of ${state.at}. ${counted(written, 'byte')} written.`,
    '',
    'The backup contains the secret of the installation: protect it like the data folder. It does not contain the drop folder and its archive, the photos, or the configuration file: copy those yourself.',
    '',
    `Check it:                    wirewatch verify ${pasted(target)}`,
    `Restore it on this machine:  wirewatch restore ${pasted(target)} --replace${installation}`,
    '                             (stop Wirewatch first; the existing files are moved aside, not deleted)',
    'Restore it on another one:   copy the backup there, then run: wirewatch restore BACKUP',
  ]);
}
