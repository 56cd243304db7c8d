/** Notes an operation on the whole appliance that an operator asks for in `access.db`, and so in the audit trail. */
import { type Database, writing } from '../store/database.ts';

const SET_OPERATION = `
  INSERT INTO operation (id, request, asked_at) VALUES (1, :request, :asked_at)
  ON CONFLICT (id) DO UPDATE SET request = excluded.request, asked_at = excluded.asked_at`;

/** @param request `{ kind, … }`, without a secret; times in it are epoch milliseconds */
export function noteOperation(access: Database, request: { readonly kind: string }, nowMs: number): void {
  writing(access, () =>
    access.prepare(SET_OPERATION).run({ request: JSON.stringify(request), asked_at: nowMs }),
  );
}
