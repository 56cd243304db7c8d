/** The epoch of the console's links and sessions: whoever raises it ends them all. */
import { type Database, writing } from '../store/database.ts';

const SELECT_EPOCH = 'SELECT epoch FROM console WHERE id = 1';
const RAISE_EPOCH = `
  INSERT INTO console (id, epoch) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET epoch = epoch + 1`;

export function readConsoleEpoch(db: Database): number {
  return db.prepare<[], { epoch: number }>(SELECT_EPOCH).get()?.epoch ?? 0;
}

/** Ends every link and session that was made before. */
export function endConsoleSessions(db: Database): void {
  writing(db, () => db.prepare(RAISE_EPOCH).run());
}
