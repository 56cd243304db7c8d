/** `wirewatch ingest`: what was read and what is waiting; checks a file, reads the archive again, pauses, resumes. */
import { counted, grouped } from '../counted.ts';
import { pauseIngest, resumeIngest } from '../ingest/pause.ts';
import type { ReplayCounts } from '../ingest/requests/requests.ts';
import { Refused } from '../refused.ts';
import { isThere } from '../store/folder.ts';
import { formatMs } from '../time.ts';
import { withAccess } from './access.ts';
import { commandGroup, option, subcommand } from './command.ts';
import { explain, validate } from './ingest-file.ts';
import { status } from './ingest-status.ts';
import { commandFolder } from './installation.ts';
import { DROP_OPTION, readInstant } from './options.ts';

const replay = subcommand(
  'replay',
  'read archived files again in their original order, to add rows of subscriptions that were added later and to apply a changed --print-metadata. Whatever is up to date stays unchanged',
  {
    options: [
      option('--from <time>', 'only files first applied at or after this time', readInstant),
      option('--to <time>', 'only files first applied before this time', readInstant),
      DROP_OPTION,
    ],
    examples: ['ingest replay', 'ingest replay --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z'],
    async run({ from = 0, to = Number.MAX_SAFE_INTEGER }, self) {
      if (from >= to) throw new Refused('usage', '--from must be earlier than --to');
      const { serveRequest } = await import('./ingest-request.ts');
      const outcome = await serveRequest(self, { kind: 'replay', from, to });
      if (!('replay' in outcome)) throw new Error('the answer to a replay is of another kind');
      const { replay: counts } = outcome;
      return { value: counts, text: () => replayText(counts), failed: counts.unreadable.length > 0 };
    },
  },
);

function replayText(counts: ReplayCounts): string {
  return [
    `${counted(counts.files, 'file')} with ${counted(counts.rows, 'row')} ${counts.files === 1 ? 'was' : 'were'} read again: ${counted(counts.created, 'detection')} created, ${grouped(counts.updated)} updated, ${grouped(counts.rescored)} re-scored, ${grouped(counts.unchanged)} unchanged.`,
    ...counts.unreadable.map(({ file, reason }) => `not read: ${file}: ${reason}`),
  ].join('\n');
}

const pause = subcommand('pause', 'stop reading dropped files until "ingest resume", also across restarts', {
  examples: ['ingest pause'],
  run(_values, self) {
    const folder = commandFolder(self);
    const isNew = !isThere(folder.access);
    // Before the first start, too: files that wait already are not read then.
    const pausedMs = withAccess(self, (access) => pauseIngest(access, Date.now()), { create: true });
    const paused_since = formatMs(pausedMs);
    return {
      value: { paused: true, paused_since },
      text: `${isNew ? `Created a new installation in ${folder.root}. If you meant another one, name its data folder with --data.\n` : ''}Ingest has been paused since ${paused_since}. Dropped files stay where they are. Resume with: wirewatch ingest resume`,
    };
  },
});

const resume = subcommand('resume', 'resume reading dropped files after "ingest pause"', {
  examples: ['ingest resume'],
  run(_values, self) {
    const pausedMs = withAccess(self, resumeIngest);
    return {
      value: { paused: false, paused_since: null },
      text:
        pausedMs === null
          ? 'Ingest was not paused.'
          : `Ingest has been resumed. It had been paused since ${formatMs(pausedMs)}.`,
    };
  },
});

export const register = commandGroup(status, validate, explain, replay, pause, resume);
