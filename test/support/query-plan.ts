/** How SQLite would run a statement. */
import type { Database } from '../../src/store/database.ts';

/** @returns the steps, one a line; their numbers are bound as 1 */
export function planOf(db: Database, sql: string): string {
  const names = [...sql.matchAll(/[@:]([a-z]\w*)/g)].map(([, name = '']) => [name, 1]);
  const values = names.length > 0 ? [Object.fromEntries(names)] : Array(sql.split('?').length - 1).fill(1);
  const lines = db.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
  return lines.map(({ detail }) => detail).join('\n');
}
