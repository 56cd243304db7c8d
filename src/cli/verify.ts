/** `wirewatch verify`: whether an installation or a backup is intact. */
import type { Command } from 'commander';
import { beGentle } from './backup.ts';
import { addDropOption, addExamples } from './options.ts';
import { verifySource } from './verify-backup.ts';
import { verifyData } from './verify-data.ts';

export function register(command: Command): void {
  command
    .argument('[src]', 'a backup folder or .tar file (default: verify the data folder)')
    .action(async (source: string | undefined, _options: object, self: Command) => {
      beGentle();
      await (source === undefined ? verifyData(self) : verifySource(self, source));
    });
  addDropOption(command);
  addExamples(command, ['verify', 'verify /backups/wirewatch', 'verify monday.tar --json']);
}
