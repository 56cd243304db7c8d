/** Reading of dropped files: a pause, and reading archived files again; rewriting the log. */
import { listAccounts } from '../auth/accounts.ts';
import { listSubscriptions } from '../auth/subscriptions.ts';
import { counted, grouped } from '../counted.ts';
import { pauseIngest, resumeIngest } from '../ingest/operator-pause.ts';
import { joined } from '../text-layout.ts';
import { formatMs } from '../time.ts';
import { instant, requireSpan } from './member.ts';
import { act, noted } from './operation.ts';

export const INGEST = [
  act('ingest replay', {
    summary:
      'read archived files again in their original order, to add rows of subscriptions that were added later and to apply a changed --print-metadata. Whatever is up to date stays unchanged',
    members: {
      from: instant('only files first applied at or after this time'),
      to: instant('only files first applied before this time'),
    },
    examples: ['ingest replay', 'ingest replay --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z'],
    readsDrop: true,
    form: {
      label: 'Replay files',
      will: 'The files in archive/ that were first applied between these times are read again; without times, every file is. Detections that differ get a new version, which clients receive; equal ones stay unchanged.',
    },
    // One of another period is another one, and so is one that began before a licence or a subscription changed: whoever
    // waited for it would be told that theirs is done.
    job: ({ from, to }, { access }) => [
      joined(' ', [from !== undefined && `from ${formatMs(from)}`, to !== undefined && `to ${formatMs(to)}`]),
      listAccounts(access()).map(({ print_metadata }) => print_metadata),
      listSubscriptions(access()),
    ],
    async run(context, { from = 0, to = Number.MAX_SAFE_INTEGER }) {
      requireSpan(from, to);
      const counts = await context.ingest(noted(context, { kind: 'replay', from, to }));
      const done = joined('\n', [
        `${counted(counts.files, 'file')} with ${counted(counts.rows, 'row')} ${counts.files === 1 ? 'was' : 'were'} read again: ${counted(counts.created, 'detection')} created, ${grouped(counts.updated)} updated, ${grouped(counts.rescored)} re-scored, ${grouped(counts.unchanged)} unchanged.`,
        counts.left_out > 0 &&
          `left out: ${counted(counts.left_out, 'row')}: bad ones, those of a missing subscription, and of one that was removed and added again after the file came.`,
        ...counts.unreadable.map(({ file, reason }) => `not read: ${file}: ${reason}`),
      ]);
      return { value: counts, done, failed: counts.unreadable.length > 0 };
    },
  }),
  act('ingest pause', {
    summary: 'stop reading dropped files until "ingest resume", also across restarts',
    examples: ['ingest pause'],
    // Before the first start, too: files that wait already are not read then.
    creates: true,
    form: {
      label: 'Pause ingest',
      will: 'Export files stay in the drop folder until ingest is resumed, also after a restart. Clients can still read. The file being read is finished first.',
    },
    run({ change, folder, isNew, nowMs }) {
      const paused_since = formatMs(change((access) => pauseIngest(access, nowMs)));
      const done = `${isNew ? `Created a new installation in ${folder.root}. If you meant another one, name its data folder with --data.\n` : ''}Ingest has been paused since ${paused_since}. Dropped files stay where they are. Resume with: wirewatch ingest resume`;
      return { value: { paused: true, paused_since }, done };
    },
  }),
  act('ingest resume', {
    summary: 'resume reading dropped files after "ingest pause"',
    examples: ['ingest resume'],
    form: {
      label: 'Resume ingest',
      will: 'Files in the drop folder are read again, the oldest windows first.',
    },
    run({ change }) {
      const pausedMs = change(resumeIngest);
      const done =
        pausedMs === null
          ? 'Ingest was not paused.'
          : `Ingest has been resumed. It had been paused since ${formatMs(pausedMs)}.`;
      return { value: { paused: false, paused_since: null }, done };
    },
  }),
];

export const COMPACT = act('compact', {
  summary:
    'rewrite the log from the database: shorter, without the rows of removed subscriptions, and without damage',
  help: `The new log begins with a snapshot of detections.db, which is compared with the log before and with the snapshot
afterwards. Cursors stay valid. Reads and the reading of new windows continue; backfills and other requests wait. It needs
room for the new log and about a fifth of the size of detections.db. The copy takes over the new log.

If the log is damaged, so that Wirewatch does not start, this makes a whole one from the database, and loses nothing that
the database has. If it refuses, restore a backup.`,
  examples: ['compact', 'compact --data /var/lib/wirewatch'],
  form: {
    label: 'Rewrite the log',
    will: 'The log is rewritten from the database: shorter, without removed rows and damage. Reads and new windows continue.',
  },
  job: () => [''],
  async run(context) {
    const compacted = await context.ingest(noted(context, { kind: 'compact' }));
    const { entry, detections, versions, bytes, bytes_before, damage } = compacted;
    return {
      value: compacted,
      done: `Rewrote the log. It begins with entry ${grouped(entry)}: ${counted(detections, 'detection')}, ${counted(versions, 'version')}, in ${counted(bytes, 'byte')} (before: ${grouped(bytes_before)}).`,
      next: [
        damage !== null && `The old log was damaged: ${damage}. Check the disk.`,
        context.config.copy.to === '' && 'Make a backup soon: wirewatch backup FOLDER',
      ],
    };
  },
});
