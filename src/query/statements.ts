/**
 * Statements whose text depends on a request's shape (how many streams, which filters), prepared once a shape.
 *
 * Preparing takes longer than a small page. Shapes are many, so only so many are kept.
 */
import type { Database, Statement } from '../store/database.ts';

const SHAPES_MAX = 100;

/** A family of statements. @param render the SQL for a number of streams and a fragment of conditions */
export function statementFamily<Row>(
  render: (streams: number, conditions: string) => string,
): (db: Database, streams: number, conditions: string) => Statement<Row> {
  const byDatabase = new WeakMap<Database, Map<string, Statement<Row>>>();
  return (db, streams, conditions) => {
    let statements = byDatabase.get(db);
    if (statements === undefined) {
      statements = new Map();
      byDatabase.set(db, statements);
    }
    const shape = `${streams}${conditions}`;
    let statement = statements.get(shape);
    if (statement === undefined) {
      statement = db.prepare<unknown[], Row>(render(streams, conditions));
      if (statements.size >= SHAPES_MAX) forgetFirst(statements);
      statements.set(shape, statement);
    }
    return statement;
  };
}

/** A single statement, prepared once a database. */
export function preparedOnce<Row>(sql: string): (db: Database) => Statement<Row> {
  const byDatabase = new WeakMap<Database, Statement<Row>>();
  return (db) => {
    let statement = byDatabase.get(db);
    if (statement === undefined) {
      statement = db.prepare<unknown[], Row>(sql);
      byDatabase.set(db, statement);
    }
    return statement;
  };
}

function forgetFirst(statements: Map<string, unknown>): void {
  for (const shape of statements.keys()) {
    statements.delete(shape);
    return;
  }
}
