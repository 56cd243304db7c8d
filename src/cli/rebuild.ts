/** `wirewatch rebuild`: rebuilds detections.db from its log, or the logs from verified databases. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Command } from 'commander';
import { counted, grouped } from '../counted.ts';
import { type RebuildOptions, rebuildDatabase, rebuildLog } from '../history/rebuild.ts';
import { Refused } from '../refused.ts';
import { actAsOwner } from '../store/acting-user.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { isThere } from '../store/folder.ts';
import { takeStopped } from '../store/locks.ts';
import { VERSION } from '../version.ts';
import { configOf, folderOf } from './config.ts';
import { operationOf } from './operation.ts';
import { addExamples, commonOptions } from './options.ts';
import { print, progressOfSteps } from './output.ts';

const HELP = `
Without --log, detections.db is rebuilt from its log. All positions, versions and contents stay the same, and cursors
stay valid. At each start, Wirewatch does this by itself if the database is missing, damaged or older than the log.

With --log, both logs are replaced by new ones, which start with the contents of detections.db and access.db. Use it if
a log is damaged or has grown too long. The databases are verified first, and the new log is compared with the database
before it is used. The old logs are kept beside the new ones: make a backup, then delete them. From then on,
"wirewatch log --access" shows only later changes.`;

export function register(command: Command): void {
  command
    .option('--log', 'rebuild the logs from the databases')
    .addHelpText('after', HELP)
    .action(async (options: { log?: boolean }, self: Command) => {
      const folder = folderOf(configOf(self));
      if (!isThere(folder.root))
        throw new Refused(
          'configuration',
          `there is no data folder ${folder.root}. Name the data folder of the installation with --data.`,
        );
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
              text: `Rebuilt ${folder.detections} from ${counted(entries, 'log entry', 'log entries')}: ${counted(detections, 'detection')}, ${counted(versions, 'version')}.`,
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
    `Rebuilt the log. It starts with entry ${grouped(entry)}: ${counted(detections, 'detection')}, ${counted(versions, 'version')}, in ${counted(bytes, 'byte')} (before: ${counted(bytes_before, 'byte')}).`,
    ...(aside.length === 0
      ? []
      : [
          `The old logs are kept. Make a backup, then delete them:\n${aside.map((path) => `  ${path}`).join('\n')}`,
        ]),
  ].join('\n\n');
}
