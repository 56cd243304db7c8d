/** `wirewatch ingest`: what was read, what waits, and what a file would bring. */
import type { Command } from 'commander';
import { pauseIngest, resumeIngest } from '../ingest/subscribers.ts';
import { formatMs } from '../time.ts';
import { withAccess } from './access.ts';
import { registerExplain, registerValidate } from './ingest-file.ts';
import { registerReplay } from './ingest-replay.ts';
import { registerStatus } from './ingest-status.ts';
import { addExamples, commonOptions } from './options.ts';
import { print } from './output.ts';

export function register(ingest: Command): void {
  registerStatus(ingest);
  registerValidate(ingest);
  registerExplain(ingest);
  registerReplay(ingest);
  registerPause(ingest);
  registerResume(ingest);
}

function registerPause(ingest: Command): void {
  const command = ingest
    .command('pause')
    .description('leave dropped files where they are until "ingest resume"; kept over restarts')
    .action((_options, self: Command) => {
      const paused = formatMs(
        withAccess(self, (access) => pauseIngest(access, Date.now()), { create: true }),
      );
      const text = `Ingest is paused since ${paused}. Dropped files stay where they are. Go on with: wirewatch ingest resume`;
      print({ paused: true, paused_since: paused }, { json: commonOptions(self).json, text });
    });
  addExamples(command, ['ingest pause']);
}

function registerResume(ingest: Command): void {
  const command = ingest
    .command('resume')
    .description('read dropped files again after "ingest pause"')
    .action((_options, self: Command) => {
      const was = withAccess(self, resumeIngest);
      const text =
        was === null ? 'Ingest was not paused.' : `Ingest goes on. It was paused since ${formatMs(was)}.`;
      print({ paused: false, paused_since: null }, { json: commonOptions(self).json, text });
    });
  addExamples(command, ['ingest resume']);
}
