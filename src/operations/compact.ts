/** Rewriting the log: shorter, without removed rows, without damage. */
import { noteOperation } from '../auth/audit.ts';
import { counted, grouped } from '../counted.ts';
import { act } from './operation.ts';

export const COMPACT = act('compact', {
  summary:
    'rewrite the log from the database: shorter, without the rows of removed subscriptions, and without damage',
  help: `The new log begins with a snapshot of detections.db, which is compared with the log before and with the snapshot
afterwards. Cursors stay valid. Reads and the reading of new windows continue; backfills and other requests wait. It needs
room for the new log and about a fifth of the size of detections.db. The next backup takes over the new log.

If the log is damaged, so that Wirewatch does not start, this makes a whole one from the database, and loses nothing that
the database has. If it refuses, restore a backup.`,
  examples: ['compact', 'compact --data /var/lib/wirewatch'],
  form: {
    label: 'Rewrite the log',
    will: 'The log is written anew from the database, and replaces the old one: shorter, without removed rows and damage. Reads and new windows continue.',
  },
  job: () => '',
  async run(context) {
    const request = { kind: 'compact' } as const;
    context.change((access) => noteOperation(access, request));
    const answer = await context.ingest(request);
    if (!('compacted' in answer)) throw new Error('the answer to a compaction is of another kind');
    const { compacted } = answer;
    const { entry, detections, versions, bytes, bytes_before, damage } = compacted;
    return {
      value: compacted,
      done: `Rewrote the log. It begins with entry ${grouped(entry)}: ${counted(detections, 'detection')}, ${counted(versions, 'version')}, in ${counted(bytes, 'byte')} (before: ${grouped(bytes_before)}).`,
      next: [
        damage !== null && `The old log was damaged: ${damage}. Check the disk.`,
        'Make a backup soon: wirewatch backup FOLDER',
      ],
    };
  },
});
