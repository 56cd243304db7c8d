/**
 * Prepared statements whose text depends on the number of streams and the filters of a request, cached for each database:
 * preparing takes longer than reading a small page.
 */
import { BoundedMap } from '../bounded-map.ts';
import { STREAMS_MAX } from '../limits/contract-limits.ts';
import type { Database, Statement } from '../store/database.ts';

const SHAPES_MAX = 100;

/** Made once: a name made for each request would cost as much as a lookup. */
const STREAM_NAMES = Array.from({ length: STREAMS_MAX }, (_, index) => `stream${index}`);

/**
 * A bound number that does not influence the query plan.
 *
 * SQLite reads a bare parameter after LIMIT, or compared with the first column of an index, to choose the plan, and
 * compiles the statement again each time it is bound. For a page over eight streams that took as long as reading it. It
 * does not do so for a sum.
 */
export function asItComes(parameter: string): string {
  return `(${parameter} + 0)`;
}

/** A piece of SQL for each stream. @param arm receives an expression of the stream's ordinal */
export function streamArms(streams: number, arm: (ordinal: string) => string): string[] {
  return Array.from({ length: streams }, (_, index) => arm(asItComes(`@${parameterName(index)}`)));
}

/** The values of the names in {@link streamArms}. */
export function streamValues(streams: readonly { readonly ordinal: number }[]): Record<string, number> {
  const values: Record<string, number> = {};
  for (const [index, { ordinal }] of streams.entries()) values[parameterName(index)] = ordinal;
  return values;
}

function parameterName(index: number): string {
  return STREAM_NAMES[index] ?? `stream${index}`;
}

/** A family of statements. @param render the SQL for a number of streams and a fragment of conditions */
export function statementFamily<Row>(
  render: (streams: number, conditions: string) => string,
): (db: Database, streams: number, conditions: string) => Statement<Row> {
  const byDatabase = new WeakMap<Database, BoundedMap<string, Statement<Row>>>();
  return (db, streams, conditions) => {
    let statements = byDatabase.get(db);
    if (statements === undefined) {
      statements = new BoundedMap(SHAPES_MAX);
      byDatabase.set(db, statements);
    }
    const shape = `${streams}${conditions}`;
    let statement = statements.get(shape);
    if (statement === undefined) {
      statement = db.prepare<unknown[], Row>(render(streams, conditions));
      statements.set(shape, statement);
    }
    return statement;
  };
}
