/** `wirewatch ingest`: what was read, what is waiting, and what a file would change. */
import type { Command } from 'commander';
import { pauseIngest, resumeIngest } from '../ingest/pause.ts';
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
    .description('stop reading dropped files until "ingest resume", also across restarts')
    .action((_options, self: Command) => {
      const paused = formatMs(
        withAccess(self, (access) => pauseIngest(access, Date.now()), { create: true }),
      );
      const text = `Ingest has been paused since ${paused}. Dropped files stay where they are. Resume with: wirewatch ingest resume`;
      print({ paused: true, paused_since: paused }, { json: commonOptions(self).json, text });
    });
  addExamples(command, ['ingest pause']);
}

function registerResume(ingest: Command): void {
  const command = ingest
    .command('resume')
    .description('resume reading dropped files after "ingest pause"')
    .action((_options, self: Command) => {
      const was = withAccess(self, resumeIngest);
      const text =
        was === null
          ? 'Ingest was not paused.'
          : `Ingest has been resumed. It had been paused since ${formatMs(was)}.`;
      print({ paused: false, paused_since: null }, { json: commonOptions(self).json, text });
    });
  addExamples(command, ['ingest resume']);
}
