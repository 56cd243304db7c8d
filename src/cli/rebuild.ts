/** `wirewatch rebuild`: rebuilds detections.db from its log, or the log from a verified database. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { counted, grouped } from '../counted.ts';
import { rebuildDatabase, rebuildLog } from '../history/rebuild.ts';
import { toggle } from '../operations/member.ts';
import { Refused } from '../refused.ts';
import { refuseHalfRestored } from '../store/complete-restore.ts';
import { isThere } from '../store/folder.ts';
import { takeStopped } from '../store/locks.ts';
import { requireOwner } from '../store/owner.ts';
import { joined } from '../text-layout.ts';
import { VERSION } from '../version.ts';
import { defineCommand } from './command.ts';
import { configOf, folderOf } from './installation.ts';
import { createProgress } from './output.ts';

const HELP = `
Without --log, detections.db is rebuilt from its log. All positions, versions and contents stay the same, and cursors
stay valid. At each start, Wirewatch does this by itself if the database is missing, damaged or older than the log.

With --log, the log is replaced by a new one, which starts with the contents of detections.db. Use it if the log is
damaged or has grown too long. The database is verified first, and the new log is compared with it before it is used.
The old log is kept beside the new one: make a backup, then delete it.`;

export const register = defineCommand({
  members: { log: toggle('rebuild the log from the database') },
  help: HELP,
  examples: ['rebuild', 'rebuild --log --data /var/lib/wirewatch'],
  async run({ log = false }, self) {
    const folder = folderOf(configOf(self));
    const { root: data } = folder;
    if (!isThere(data))
      throw new Refused(
        'configuration',
        `there is no data folder ${data}. Name the data folder of the installation with --data.`,
      );
    requireOwner(folder);
    using held = new DisposableStack();
    held.defer(takeStopped(folder));
    refuseHalfRestored(folder);
    const { update: onProgress } = held.use(createProgress());
    const work = { folder, program: VERSION, onProgress, between: () => nextTurn() };
    if (log) {
      const rebuilt = await rebuildLog(work, Date.now());
      return { value: { rebuilt: 'log', data, ...rebuilt }, text: logText(rebuilt) };
    }
    const rebuilt = await rebuildDatabase(work);
    const { entries, detections, versions } = rebuilt;
    return {
      value: { rebuilt: 'detections.db', data, ...rebuilt },
      text: `Rebuilt ${folder.detections} from ${counted(entries, 'log entry', 'log entries')}: ${counted(detections, 'detection')}, ${counted(versions, 'version')}.`,
    };
  },
});

function logText(rebuilt: Awaited<ReturnType<typeof rebuildLog>>): string {
  const { entry, detections, versions, bytes, bytes_before, kept, entries_lost } = rebuilt;
  return joined('\n\n', [
    `Rebuilt the log. It starts with entry ${grouped(entry)}: ${counted(detections, 'detection')}, ${counted(versions, 'version')}, in ${counted(bytes, 'byte')} (before: ${counted(bytes_before, 'byte')}).`,
    entries_lost > 0 &&
      `The damaged log had ${counted(entries_lost, 'entry', 'entries')} that detections.db lacked: ${entries_lost === 1 ? 'it is' : 'they are'} lost. If clients have seen a lost change, the alert "end of log lost" opens. To keep as much as possible, put the old log back and restore a backup instead.`,
    kept !== null && `The old log is kept in ${kept}. Make a backup, then delete it.`,
  ]);
}
