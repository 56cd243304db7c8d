/** `wirewatch ingest replay`: reads archived files again. */
import type { Command } from 'commander';
import { counted, grouped } from '../counted.ts';
import type { ReplayCounts } from '../ingest/requests/requests.ts';
import { Refused } from '../refused.ts';
import { addDropOption, addExamples, commonOptions, instantValue } from './options.ts';
import { print } from './output.ts';

export function registerReplay(ingest: Command): void {
  const command = ingest
    .command('replay')
    .description(
      'read archived files again in their original order, to add rows of subscriptions that were added later and to apply a changed --print-metadata. Whatever is up to date stays unchanged',
    )
    .option('--from <time>', 'only files first applied at or after this time', instantValue)
    .option('--to <time>', 'only files first applied before this time', instantValue)
    .action(async (options: { from?: number; to?: number }, self: Command) => {
      const bounds = { from: options.from ?? 0, to: options.to ?? Number.MAX_SAFE_INTEGER };
      if (bounds.from >= bounds.to) throw new Refused('usage', '--from must be earlier than --to');
      const { serveRequest } = await import('./ingest-request.ts');
      const outcome = await serveRequest(self, { kind: 'replay', ...bounds });
      if (!outcome.ok) throw new Refused('failed', outcome.reason);
      if (!('replay' in outcome)) return;
      print(outcome.replay, { json: commonOptions(self).json, text: () => replayText(outcome.replay) });
      if (outcome.replay.unreadable.length > 0) process.exitCode = 1;
    });
  addDropOption(command);
  addExamples(command, [
    'ingest replay',
    'ingest replay --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z',
  ]);
}

function replayText(counts: ReplayCounts): string {
  const lines = [
    `${counted(counts.files, 'file')} with ${counted(counts.rows, 'row')} ${counts.files === 1 ? 'was' : 'were'} read again: ${counted(counts.created, 'detection')} created, ${grouped(counts.updated)} updated, ${grouped(counts.rescored)} re-scored, ${grouped(counts.unchanged)} unchanged.`,
    ...counts.unreadable.map(({ file, reason }) => `not read: ${file}: ${reason}`),
  ];
  return lines.join('\n');
}
