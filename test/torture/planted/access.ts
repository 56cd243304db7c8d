/** Faults in access control: ownership, revocation, expiry, scopes, secrets in the log. */
import { faultsIn, type PlantedFault } from './fault.ts';

export const ACCESS_FAULTS: readonly PlantedFault[] = [
  ...faultsIn('auth/open-access.ts', 'audit-trail', {
    '[-writeEntry(db, before, operation, now());-]': 'every change is in the audit trail',
  }),
  ...faultsIn('admin/thread.ts', 'urgent', {
    '[-folder, writer, denied-]{+folder, writer+}': 'what only the memory denies comes into access.db',
  }),
  ...faultsIn('auth/spare-copy.ts', 'spare-copy', {
    '[-kept.state.change > found.state.change-]{+false+}': 'an older access.db does not revive a revoked key',
  }),
  ...faultsIn('copy/restore.ts', 'restore-damaged', {
    '[-applyEnded(db, ended);-]': 'a restore revives no revoked key',
  }),
  ...faultsIn('auth/access-reader.ts', 'credential-check', {
    'if ([-version !== store.keysVersion-]{+false+}) store': 'a revoked key does not stay in the cache',
    '[-AND s.account_id = k.account_id-]': 'a key reads subscriptions of its own account',
  }),
  ...faultsIn('auth/keys.ts', 'credential-check', {
    "[-if (revoked_at !== null) return 'revoked';-]": 'a revoked key is refused',
  }),
  ...faultsIn('auth/credential-check.ts', 'credential-check', {
    'if ([-stored.account.suspended_at !== null-]{+false+}) return': 'a suspended account is refused',
    '[-allowed.length > 0 && !isAddressListed(allowed, address)-]{+false+}':
      'a key works only from its addresses',
  }),
  ...faultsIn('auth/credential-check.ts', 'every-credential', {
    '[-if (credential.scopes.includes(scope)) -]return;': 'a missing scope is refused',
  }),
  ...faultsIn('auth/client-credentials.ts', 'token-refusal', {
    "[-|| keyStatus(key, nowMs) !== 'active'-]": 'a revoked key gets no token',
  }),
  ...faultsIn('query/streams.ts', 'parameters', {
    'if ([-ids?.some((id) => !subscriptions.some((subscription) => subscription.id === id))-]{+false+})':
      'a subscription of another account is refused',
  }),
  ...faultsIn('query/detection-text.ts', 'changes-page', {
    '[-if (!streams.includes(streamOfId(id))) return null;-]':
      'a detection of another account does not exist',
  }),
  ...faultsIn('query/cursors.ts', 'cursors', {
    '[-block.readUIntBE(0, EPOCH_START) !== 0 ||-]': 'only issued cursors are accepted',
    'if ([-given !== request-]{+false+})': 'a cursor is valid only for its own request',
  }),
  ...faultsIn('query/period-request.ts', 'other-accounts', {
    '[-account,\n    -]from,': 'a period cursor belongs to an account',
  }),
  ...faultsIn('printable.ts', 'redaction', {
    'return text.replace([-SECRET_IN_TEXT-]{+/^$/+}': 'a secret in a text is not logged',
  }),
  ...faultsIn('printable.ts', 'printable', {
    '[-text.matchAll(RUN_OR_ESCAPE)-]{+[]+}': 'a key in a path is not logged',
  }),
  ...faultsIn('admin/operation-requests.ts', 'console-sessions', {
    "[-operation.kind === 'act' && !mayAct-]{+false+}": 'a read-only session changes nothing',
    'if ([-!isValid()-]{+false+}) return': 'a session that has ended changes nothing',
  }),
  ...faultsIn('admin/host-header.ts', 'console-sessions', {
    "return [-site !== 'same-origin'-]{+false+};": 'a page of another origin is refused',
  }),
  ...faultsIn('admin/console/console.ts', 'console-sessions', {
    'request.headers.[-authorization-]{+cookie+} ??': 'a cookie is worth nothing',
  }),
  ...faultsIn('auth/audit.ts', 'audit-trail', {
    'if ([-checksumOf(row) !== row.checksum-]{+false+})': 'the audit trail says what is damaged',
  }),
  ...faultsIn('console/inline.ts', 'console-bundle', {
    '<span class="soft"[->${text}</span>-]{+ innerHTML=${text} />+}':
      'what an export wrote is inserted as text',
  }),
];
