/** `wirewatch rebuild`: makes detections.db anew from its log, or the logs anew from verified databases. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Command } from 'commander';
import { type RebuildOptions, rebuildDatabase, rebuildLog } from '../history/rebuild.ts';
import { Refused } from '../refused.ts';
import { actAsOwner } from '../store/acting-user.ts';
import { isThere } from '../store/folder.ts';
import { refuseHalfRestored } from '../store/incoming.ts';
import { takeStopped } from '../store/locks.ts';
import { VERSION } from '../version.ts';
import { configOf, folderOf } from './config.ts';
import { operationOf } from './operation.ts';
import { addExamples, commonOptions } from './options.ts';
import { counted, print, progressOfSteps } from './output.ts';

const HELP = `
The appliance must be stopped.

Without --log, detections.db is made anew from its log: every position, version and text is as it was, and cursors go on.
A start does the same by itself where the database is missing, damaged or older than the log.

With --log, both logs begin anew with all that detections.db and access.db hold. Use it where a log is damaged, or has
grown too long. The databases are verified first, and the new log is compared with the database before it is used. The
old logs are kept beside the new ones; delete them when you have made a backup. "wirewatch log --access" shows only what
comes after.`;

export function register(command: Command): void {
  command
    .option('--log', 'begin the logs anew from the databases')
    .addHelpText('after', HELP)
    .action(async (options: { log?: boolean }, self: Command) => {
      const folder = folderOf(configOf(self));
      if (!isThere(folder.root))
        throw new Refused('configuration', `there is no data folder ${folder.root}. Name it with --data.`);
      actAsOwner(folder);
      const release = takeStopped(folder);
      const steps = progressOfSteps();
      const { json } = commonOptions(self);
      try {
        refuseHalfRestored(folder);
        const work: RebuildOptions = {
          folder,
          program: VERSION,
          onProgress: steps.update,
          between: () => nextTurn(),
        };
        if (options.log === true) {
          const rebuilt = await rebuildLog(work, operationOf(self), Date.now());
          steps.end();
          print({ rebuilt: 'log', data: folder.root, ...rebuilt }, { json, text: () => logText(rebuilt) });
        } else {
          const rebuilt = await rebuildDatabase(work);
          steps.end();
          const { entries, detections, versions } = rebuilt;
          print(
            { rebuilt: 'detections.db', data: folder.root, ...rebuilt },
            {
              json,
              text: `Made ${folder.detections} anew from ${counted(entries, 'entry', 'entries')} of the log: ${counted(detections, 'detection')}, ${counted(versions, 'version')}.`,
            },
          );
        }
      } finally {
        steps.end();
        release();
      }
    });
  addExamples(command, ['rebuild', 'rebuild --log --data /var/lib/wirewatch']);
}

function logText(rebuilt: Awaited<ReturnType<typeof rebuildLog>>): string {
  const { entry, detections, versions, bytes, bytes_before, kept, access_kept } = rebuilt;
  const aside = [kept, access_kept].filter((path) => path !== null);
  return [
    `The log begins anew with entry ${entry.toLocaleString('en-US')}: ${counted(detections, 'detection')}, ${counted(versions, 'version')}, in ${counted(bytes, 'byte')} (before: ${bytes_before.toLocaleString('en-US')}).`,
    ...(aside.length === 0
      ? []
      : [
          `The old logs are kept. Delete them when you have made a backup:\n${aside.map((path) => `  ${path}`).join('\n')}`,
        ]),
  ].join('\n\n');
}
