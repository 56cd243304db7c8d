/** `wirewatch verify`: whether an installation, or a backup of one, is as it was written. */
import type { Command } from 'commander';
import { beGentle } from './backup.ts';
import { addDropOption, addExamples } from './options.ts';
import { verifySource } from './verify-backup.ts';
import { verifyData } from './verify-data.ts';

export function register(command: Command): void {
  command
    .argument('[src]', 'a backup: a folder or a file; without it, the data folder is checked')
    .action(async (source: string | undefined, _options: object, self: Command) => {
      beGentle();
      await (source === undefined ? verifyData(self) : verifySource(self, source));
    });
  addDropOption(command);
  addExamples(command, ['verify', 'verify /backups/wirewatch', 'verify monday.tar --json']);
}
