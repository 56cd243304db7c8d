/** `wirewatch ingest`: what was read, what waits, and what a file would bring. */
import type { Command } from 'commander';
import { openAccess } from '../store/access.ts';
import { writing } from '../store/database.ts';
import { formatMs } from '../time.ts';
import { resolveDataFolder } from './data-folder.ts';
import { registerExplain, registerValidate } from './ingest-file.ts';
import { registerReplay } from './ingest-replay.ts';
import { registerStatus } from './ingest-status.ts';
import { addExamples, commonOptions } from './options.ts';
import { print } from './output.ts';

const INSERT_PAUSE = 'INSERT INTO ingest_pause (id, paused_at) VALUES (1, :paused_at) ON CONFLICT DO NOTHING';
const DELETE_PAUSE = 'DELETE FROM ingest_pause';
const SELECT_PAUSE = 'SELECT paused_at FROM ingest_pause';

export function register(program: Command): void {
  const ingest = program
    .command('ingest')
    .description('what was read from the drop folder, and what waits there');
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
      const paused = setPause(self, true);
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
      const was = setPause(self, false);
      const text = was === null ? 'Ingest was not paused.' : `Ingest goes on. It was paused since ${was}.`;
      print({ paused: false, paused_since: null }, { json: commonOptions(self).json, text });
    });
  addExamples(command, ['ingest resume']);
}

/** @returns since when it is, or was, paused */
function setPause(command: Command, paused: boolean): string | null {
  const db = openAccess(resolveDataFolder(commonOptions(command)), { create: paused });
  try {
    return writing(db, () => {
      if (paused) db.prepare(INSERT_PAUSE).run({ paused_at: Date.now() });
      const row = db.prepare<unknown[], { paused_at: number }>(SELECT_PAUSE).get();
      if (!paused) db.prepare(DELETE_PAUSE).run();
      return row === undefined ? null : formatMs(row.paused_at);
    });
  } finally {
    db.close();
  }
}
