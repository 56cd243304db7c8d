/** `wirewatch backup`: brings a copy up to date. */
import { constants, setPriority } from 'node:os';
import path from 'node:path';
import { backUp } from '../copy/back-up.ts';
import { isBucket } from '../copy/place.ts';
import { counted } from '../counted.ts';
import { anyText, value } from '../operations/member.ts';
import { Refused } from '../refused.ts';
import { pasted } from '../setup/shell.ts';
import { joined } from '../text-layout.ts';
import { defineCommand } from './command.ts';
import { configOf, installationOptions } from './installation.ts';
import { DROP_OPTION } from './options.ts';
import { createProgress } from './output.ts';

export const register = defineCommand({
  members: {
    dest: value(anyText, { hint: 'a folder, or s3://bucket/prefix (default: the setting [copy] to)' }),
  },
  operands: ['dest'],
  options: [DROP_OPTION],
  examples: ['backup', 'backup /backups/wirewatch', 'backup s3://backups/wirewatch --json'],
  async run({ dest }, self) {
    lowerPriority();
    const config = configOf(self);
    const to = dest ?? config.copy.to;
    if (to === '')
      throw new Refused(
        'usage',
        'there is no place for the copy. Name one (wirewatch backup FOLDER), or set [copy] to in the configuration.',
      );
    const target = isBucket(to) ? to : path.resolve(to);
    using progress = createProgress();
    const { entry, change, written } = await backUp({
      to: target,
      settings: config.copy,
      data: config.dataFolder,
      drop: config.ingest.drop,
      onProgress: progress.update,
    });
    return {
      value: { path: target, written, entries: entry, access_changes: change },
      text: () => textOf(target, written, installationOptions(self, config)),
    };
  },
});

/** Lowers the priority of this process: a running Wirewatch comes first. */
export function lowerPriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_LOW);
  } catch {
    // Not permitted: the priority stays unchanged.
  }
}

/** @param target for verify and restore */
function textOf(target: string, written: number, installation: string): string {
  return joined('\n', [
    `${target} is up to date. ${counted(written, 'byte')} written.`,
    '',
    'The copy contains the secret of the installation: protect it like the data folder. It does not contain the drop folder and its archive, the photos, or the configuration file: copy those yourself.',
    '',
    `Check it:                    wirewatch verify ${pasted(target)}`,
    `Restore it on this machine:  wirewatch restore ${pasted(target)} --replace${installation}`,
    '                             (stop Wirewatch first; the existing files are moved aside, not deleted)',
    'Restore it on another one:   make the place available there, then run: wirewatch restore SRC',
  ]);
}
