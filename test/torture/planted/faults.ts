/** The planted faults: each is one edit of the source, which breaks a promise, and which one test must catch. */
export interface PlantedFault {
  /** In `src/`. */
  readonly file: string;
  /** Must occur exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** The promise that the fault breaks, in words. */
  readonly breaks: string;
  /** The smallest test file that must fail: `NAME.test.ts`. */
  readonly test: string;
}

/**
 * `FILE | TEST | PROMISE`, and below it the edit, indented, as `git diff --word-diff` writes it: `[-what goes-]` and
 * `{+what comes+}` within the text around it.
 */
const FAULTS = `
# Missing syncs, and steps in the wrong order: a power cut would lose data.
log/log-writer.ts | durability | an entry is durable before its transaction commits
  (file) => [-fsyncSync(file)-]{+undefined+}
log/log-writer.ts | durability | the name of a new segment is synced
  [-syncFolder(folder);-]
log/torn-end.ts | durability | a start relies only on synced data
  [-fsyncSync(target.fd);-]
log/recover.ts | durability | a rebuilt database is synced before it gets its name
  [-syncFile(draft);-]
store/folder.ts | durability | the name of a data folder is synced
  [-      syncName(path)-];
store/database.ts | durability | a confirmed change of access.db is durable
  {+if (false) +}db.pragma(\`synchronous =
copy/restore.ts | durability | the rename that commits a restore is synced
  [-syncFolder(root);-]
drop/drop-folder.ts | ready-files | a taken file is synced before its entry
  [-fsyncSync(file.fd);-]
drop/drop-folder.ts | durability | the name of a taken file is synced before its entry
  [-syncIn(root, '.taken');-]
ingest/apply/window-file.ts | durability | a file is archived after its entry, not before
  [-writer.commit(applier, fileOperation(record), () => save(files, record));
      finishFile(files, record-]{+finishFile(files, record);
      writer.commit(applier, fileOperation(record), () => save(files, record)+});
ingest/apply/stream-writer.ts | durability | an entry is in the log before the database commits it
  {+db.exec('COMMIT');
          db.exec('BEGIN IMMEDIATE');
          +}const entry = log.commit(lines, operation, now());
ingest/apply/stream-writer.ts | wait | a transaction that waits for the copy is not shown before
  [-decisions?.decide(entry, db);-]

# Faults in the log, its recovery, removal and restore: missing comparisons, truncations and marks.
log/effects.ts | log-format | the log has what a statement changes
  [-db.exec(note('UPDATE', put));-]
log/frame.ts | log-entries | the checksum of an entry is verified
  [-|| commit.checksum !== checksum-]
log/segment.ts | compact | a snapshot makes earlier segments obsolete
  || file.firstEntry >[- begin.firstEntry-]{+= 0+}
log/log-reader.ts | log-entries | a log of another history is detected
  === mark.id ? 'known' : '[-foreign-]{+known+}'
log/torn-end.ts | recovery-faults | damage is distinguished from a torn end
  [-(isDoubtful && !mayBeDoubtful)-]{+false+}
log/recover.ts | recovery-faults | a doubtful end does not count as a torn end
  if ([-isDoubtful-]{+last === null+})
      throw new
log/recover.ts | recovery-faults | an entry that only the write-ahead log has is not cut off
  [-requireReach(folder, tail);-]
store/database.ts | recovery-faults | a connection that may only read is not taken for a writer
  [-db.pragma('incremental_vacuum');-]
appliance-ingest.ts | key-store-errors | what a thread brought up to date is served, also if it is not the first
  [-reader.release();-]
log/recover.ts | recovery-faults | a database is given up only after the log was read to its end
  [-await requireWhole(tail, options);-]
          madeAnew =
log/recover.ts | recovery-faults | a write-ahead log is not taken from open readers
  [-!isAgain && -]!settleWal(path)
log/recover.ts | recovery-faults | a draft of an interrupted rebuild is not continued
  [-removeDatabase(draft);
    -]const db =
store/checkpoint.ts | checkpoint | the write-ahead log of another checkpoint is not joined
  [-salts === saltsOf(path) && -]tokens.
store/checkpoint.ts | checkpoint | another file in its place is detected
  [-&& tokens.includes(ownToken(path))-]
log/apply-log.ts | recovery-faults | a rebuilt database stores its mark
  [-setLogMark(db, mark);-]
log/apply-log.ts | recovery | each row has its position
  position[- + index-]
store/checkpoint.ts | checkpoint | nothing of removed rows is left in unused parts of pages
  [-other.exec('VACUUM');-]
copy/standby.ts | promotion | the file of a standby has nothing of removed rows
  takeLog(copied, folder.log[-, () => rewrite(db)-])
log/compact.ts | compact | a log is rewritten only from a database that equals it
  if ([-findingsOf(found, 'database').length > 0-]{+false+}) throw unsound
ingest/apply/backfill.ts | removal | a replay brings no removed rows back
  exports.formerAt([-takenBy(writer.db, record)-]{+null+})
ingest/apply/backfill.ts | resumed-backfills | a resumed backfill brings no removed rows back
  exports.formerAt([-takenBy(writer.db, record)-]{+null+})
ingest/apply/window-file.ts | removal | a file that is read again brings no removed rows back
  exports.formerAt([-takenBefore(files, waiting, result.counts.sha256)-]{+null+})
ingest/apply/window-file.ts | restore | an archived file without a record brings no removed rows back
  return [-Math.min(Number(snapshot.mtimeNs / 1_000_000n), files.now())-]{+null+};
ingest/apply/window-file.ts | crash | a file that a crash left without a record is a new one
  before === null && [-hasHadOrphans(db)-]{+true+}
ingest/apply/window-file.ts | reading-settings | content that is read again brings no removed rows back
  const [same] = waiting.kind === [-'export'-]{+'refused' as string+} ?
auth/removal.ts | removal | a clock that is set back brings no removed rows back
  AND [-max(created_at, at)-]{+created_at+} > :since
ingest/apply/remove-rows.ts | removal-request | a removal costs nothing for those before it
  WHERE removed = 1 AND ({+true OR +}
copy/restore.ts | restore | a restore leaves the present owner of a number its rows
  (removed.get(id) ?? 0) > [-removals-]{+0+}
copy/discarded.ts | restore-damaged | a log that ends before its database has a lost end
  const isAll = [-lost.last?.id === applied?.id-]{+true+}
log/version-epoch.ts | version-epoch | positions stay exact numbers
  if (position [-<= POSITION_MAX && (ofClock > 0 || nowMs > CLOCK_MAX_MS)-]{+> 0+}) return
log/scrub.ts | scrub | damage of the log is reported
  [-findings.add('log damaged', error.message);-]
log/scrub.ts | scrub | rows are compared
  [-if (a?.hash === b?.hash && a?.rows === b?.rows) continue-]{+continue+};
log/scrub.ts | scrub | texts are compared with their checksums
  [-onBadText(\`\${table} place \${at}: its text does not match its checksum\`)-]{+void at+};

# Faults in the copy: two writers, parts that are lost or read twice, and what must be there before something else.
copy/ship.ts | ship | a number that was merged and deleted does not make a second writer
  return [-beyond.every((other) => other.name === name)-]{+true+};
copy/ship.ts | ship | no two merged objects of a copy overlap
  if ([-there.some((object) => object.last !== null && object.name !== merged)-]{+false+})
copy/ship.ts | ship | a copy that ends with an entry of another history is left alone
  if ([-found !== 'known' && (found !== 'before' || !kept?.includes(last?.id ?? ''))-]{+false+})
copy/ship.ts | ship | an old generation goes only once another takes its place
  {+await deleteBefore({ place, generation, begunBy: null, changes: [], objects: [] });
      +}if (await claim(old.generation
copy/source.ts | heal | a damaged log of a machine that was replaced does not make a second writer
  if ({+true || +}isStandby || newest === undefined) return copied;
copy/restore.ts | promotion | a machine that goes back in time is not put out of service by its own promotion
  machine: [-former?.machine ?? -]own.machine
copy/restore.ts | promotion | an epoch that is due outlasts a restore
  const epoch_due = [-made.raised ? null : (former?.epoch_due ?? null)-]{+null+};
copy/own-copy.ts | own-copy | a machine that took over writes over no revocation
  if (last !== undefined && {+false && +}here.prepare(SELECT_AUDITED)
copy/source.ts | heal | a proposal hinders no healing of a damaged log
  const proposed = [-waitsForCopyIn(detections) ? [] : -]commitsBackwards
copy/discarded.ts | wait | a restore loses no proposal, which nobody has seen
  const isProposed = {+false && +}keptCopies
copy/source.ts | heal | a damaged log is made anew only from a copy with its newest entry
  if ([-!(await hasEntry(copied, mark))-]{+false+})
copy/standby.ts | promotion | a machine that was promoted writes nothing behind another that took over
  took over.
      if ([-readRole(folder).promoted-]{+false+}) return;
copy/standby.ts | promotion | what an old writer still adds to the copy holds up no change of the new one
  [-renewSpare(folder, (db) => db.prepare(SKIP_CHANGES).run(entry));-]
copy/standby.ts | promotion | a standby knows no access.db that is newer than its log
  await readCopiedAccess(place[-, change-])
copy/standby.ts | promotion | rows that were removed while a standby was stopped are gone from its log
  isBehind || ([-isOther && begin !== undefined && begin.firstEntry < first-]{+known !== null && isOther+}))
copy/standby.ts | promotion | a machine whose entries the copy lacks is no standby of it
  if ({+false && +}isOther && end
copy/standby.ts | promotion | a standby takes the writer's state of access.db
  found.state.change <[-=-] state.change
store/complete-restore.ts | standby | a restored standby knows itself before its first start
  of [...RESTORED_NAMES[-, basename(role)-]])
hanging-calls.ts | folder-place | a share that hangs takes two threads
  [-second === undefined && -]performance.now()
copy/ship.ts | own-copy | access.db of a copy is not newer than its log
  {+await writeAccess(place, access);
      +}while (!(await shipLog(end, access)))
copy/own-copy.ts | own-copy | a copy with another secret is left alone
  if ([-owner.secret_sha256 !== secret_sha256-]{+false+})
store/database-errors.ts | thread-call | damage that a thread found is made good, and not the end of ingest
  [-code === 'DATABASE_DAMAGE'-]{+error instanceof DatabaseDamage+}
admin/thread.ts | standby | only the writer changes accounts and keys
  if ([-role !== 'writer'-]{+false+}) throw refusedBy(

# Faults in the handling of dropped files and their rows: positions, versions, windows, times.
ingest/files/changed-files.ts | finished-files | rows that are written into a file after it was read come
  [-readAgain(files, record, destination);-]
ingest/files/orphaned.ts | archive | a disk that is not mounted yet is no empty archive
  [-if (!hasArchive(drop.root)) return;-]
exports/file-name.ts | archive | a file that its number made another name is read again
  [name, [-unnumbered, -]unnumberedName(unnumbered)]
ingest/files/file-record.ts | reading-settings | rows that were left out can be read with other settings
  [-&& !record.report.bad_rows-];
ingest/threads/retry-pauses.ts | disk-full | a full disk is an alert while ingest waits
  [-setCondition('disk full', err.message);-]
detection/merge.ts | merge | the earliest first detection wins
  order < 0 ? [-a : b-]{+b : a+}
detection/merge.ts | merge | a visible change increases the version
  version: known.version[- + 1-]
detection/merge.ts | merge | URLs of print articles need a licence
  [-isPrint === true && !licensed ? null : -]url
detection/band.ts | vocabulary | a band begins at its threshold
  score >[-=-] threshold
ingest/apply/window-file.ts | failed-windows | a file that a reset reads again has one record
  if ([-number !== record.number-]{+false+} && !isThereIn(
drop/drop-folder.ts | ready-files | a changed file is checked again
  [-if (!stats.isFile() || !isSameSnapshot(stats, waiting.snapshot)) return false;-]
ingest/reading/read-export.ts | reading-settings | a file that fails is read no further
  [-bad.errors >= order.errors_max-]{+false+}
drop/own-folder.ts | hostile-exporter | an own folder is no link
  constants.O_DIRECTORY[- | fs.constants.O_NOFOLLOW-]
ingest/apply/backfill.ts | other-shapes | an archived file is replayed with the mapping of its first reading
  require_trailer: false, [-mapping, -]...bounds
windows/window-states.ts | overdue-search | a window is missing a day after it was due
  const MISSING_AFTER_MS = DAY_MS{+ + 10 * MINUTE_MS+};
windows/window-states.ts | windows-over-time | a file of an abandoned window is held
  [-status === 'abandoned' ? 'hold' : -]'read'
windows/window-states.ts | overdue-search | a window is abandoned after 30 days
  ABANDONED_AFTER_MS = [-30-]{+31+} * DAY_MS
windows/overdue-search.ts | overdue-search | after a clock jump no window becomes missing
  if (![-isSteady || !-]isWanted
ingest/steady-clock.ts | steady-clock | nothing is deleted in the first hour after a start
  [-monotonicMs() - startedMs >= PROVEN_AFTER_MS-]{+true+}
health/monitor.ts | monitor | a disk without an answer has no room
  disk === undefined ? [-disks[at]-]{+null+}
health/rules.ts | health | ingest is stalled after 45 minutes
  const STALLED_AFTER_MS = [-45-]{+46+} * MINUTE_MS;
appliance-ingest.ts | health-program | a damaged database is made anew while Wirewatch runs
  if ([-!isDamage(fault)-]{+true+}) return null;
ingest/files/finished-file.ts | crash | a file in .taken/ is read though the record of another has its number
  record === null[- || shortName(record.name) !== name-]

# Faults in access control: ownership, revocation, expiry, scopes, secrets in the log.
auth/open-access.ts | audit-trail | every change is in the audit trail
  [-writeEntry(db, before, operation, now());-]
admin/thread.ts | urgent | what only the memory denies comes into access.db
  [-folder, writer, denied-]{+folder, writer+}
auth/spare-copy.ts | spare-copy | an older access.db does not revive a revoked key
  [-kept.state.change > found.state.change-]{+false+}
copy/restore.ts | restore-damaged | a restore revives no revoked key
  [-applyEnded(db, added);-]
auth/access-reader.ts | credential-check | a revoked key does not stay in the cache
  if ([-version !== store.keysVersion-]{+false+}) store
auth/access-reader.ts | credential-check | a key reads subscriptions of its own account
  [-AND s.account_id = k.account_id-]
auth/keys.ts | credential-check | a revoked key is refused
  [-if (revoked_at !== null) return 'revoked';-]
auth/keys.ts | key-expiry | a rotated key works longer than the old one
  if ([-ends !== null && ends <= endMs-]{+false+})
auth/credential-check.ts | every-endpoint | a suspended account is refused
  if ([-stored.account.suspended_at !== null-]{+false+})
auth/credential-check.ts | every-endpoint | a key works only from its addresses
  [-allowed.length > 0 && !createAddressList(allowed)(address)-]{+false+}
auth/credential-check.ts | every-endpoint | a missing scope is refused
  [-if (credential.scopes.includes(scope)) -]return;
auth/client-credentials.ts | token-refusal | a revoked key gets no token
  [-|| keyStatus(key, nowMs) !== 'active'-]
query/streams.ts | other-accounts | a subscription of another account is refused
  if ([-ids?.some((id) => !subscriptions.some((subscription) => subscription.id === id))-]{+false+})
query/detection-text.ts | other-accounts | a detection of another account does not exist
  [-if (!streams.includes(streamOfId(id))) return null;-]
query/cursors.ts | cursors | only issued cursors are accepted
  [-block.readUIntBE(0, EPOCH_START) !== 0 ||-]
query/cursors.ts | cursors | a cursor is valid only for its own request
  if ([-given !== request-]{+false+})
query/period-request.ts | other-accounts | a period cursor belongs to an account
  [-account,
      -]from,
printable.ts | log | a secret in a text is not logged
  return text.replace([-SECRET_IN_TEXT-]{+/^$/+}
printable.ts | printable | a key in a path is not logged
  [-text.matchAll(RUN_OR_ESCAPE)-]{+[]+}
admin/operation-requests.ts | console-sessions | a read-only session changes nothing
  [-operation.kind === 'act' && !mayAct-]{+false+}
admin/operation-requests.ts | console-sessions | a session that has ended changes nothing
  if ([-!isValid()-]{+false+}) return
admin/operation-requests.ts | console-sessions | a session makes no other
  if ([-operation.name === 'console' && way !== 'command' && Object(given).end_all !== true-]{+false+})
admin/host-header.ts | console-sessions | a page of another origin is refused
  return [-site !== 'same-origin'-]{+false+};
admin/console/console.ts | console-sessions | a cookie is worth nothing
  request.headers.[-authorization-]{+cookie+} ??
auth/audit.ts | audit-trail | the audit trail says what is damaged
  if ([-checksumOf(row) !== row.checksum-]{+false+})
console/inline.ts | console-bundle | what an export wrote is inserted as text
  <span class="soft"[->\${text}</span>-]{+ innerHTML=\${text} />+}

# Faults in pages: rows, cursor, has_more, as_of, filters.
query/changes-page.ts | changes-page | a page says that there is more
  has_more: [-reached !== null-]{+false+}
query/changes-page.ts | changes-page | a filtered page continues after its last row
  [-page.rows === query.limit ? page.last : -]bound
query/changes-page.ts | changes-page | a page ends at its bound
  [- AND position <= @bound-]$
query/changes-page.ts | stream-check | a page has every row
  [-checkPlaces(page.places, from, to)-];
query/stream-check.ts | stream-check | missing rows at the end are detected
  if ([-!ends.every((end, stream) => end === next[stream])-]{+false+}) throw
log/detection-rows.ts | checked-texts | a damaged text is not merged
  [-requireChecksum(found);-]
query/detection-text.ts | checked-texts | a detection is at its own place
  if ([-!text.toString().startsWith(\`{"id":"\${id}",\`)-]{+false+})
store/row-checksum.ts | row-checksum | the texts of a page are checked
  || [-(crc32(COMMA, crc32(data)) | 0) !== crc-]{+false+}) throw
store/row-checksum.ts | row-checksum | a checksum covers the place
  [-Math.imul(place, 0x9e3779b1) ^ -]Math
query/delivery.ts | changes-page | a change without a delivery time is not skipped
  (recent.get(position) ?? [-Infinity-]{+0+}) >= sinceMs
query/delivery.ts | changes-page | since is inclusive
  delivered_at >[-=-] @since
query/as-of.ts | changes-page | as_of is the earliest of the exports
  Math.[-min-]{+max+}(...ends)
detection/match.ts | filters | min_score rounds half up
  Math.[-round-]{+floor+}(row.strength_score)
query/period-page.ts | period-page | a page of a period ends at its bound
  upto: [-isWithin ? bound.id : -]LAST_ID
http/waiting.ts | long-poll | the waits of a key are bounded
  [-own.length >= WAITS_PER_KEY_MAX-]{+false+}
http/page-turns.ts | page-turns | each key has one place in the queue
  {+if (queue.length === 0) +}queues.delete(keyId);
query/changes-page.ts | plans | a page of one stream is a range of places
  place > @low AND [-place-]{+place + 0+} <= @high

# Off by one at each limit of the contract.
limits/api-limits.ts | parameters | limit is at most 1000
  PAGE_ROWS_MAX = [-1000-]{+1001+}
limits/api-limits.ts | parameters | four subscriptions
  SUBSCRIPTIONS_MAX = [-4-]{+5+};
limits/api-limits.ts | parameters | since is at most 31 x 24 hours ago
  SINCE_AGE_MAX_MS = 31 * DAY_MS{+ + 1+};
limits/api-limits.ts | stream-rules | a request reads 20 streams
  STREAMS_MAX = [-20-]{+21+};
limits/api-limits.ts | period-parameters | 31 calendar days
  PERIOD_DAYS_MAX = [-31-]{+32+};
limits/api-limits.ts | period-parameters | 64 shards
  SHARDS_MAX = [-64-]{+65+};
limits/api-limits.ts | token-refusal | 4,096 bytes of a token request
  TOKEN_BODY_BYTES_MAX = [-4096-]{+4097+};
limits/api-limits.ts | me | at most 200 gaps
  DATA_GAPS_MAX = [-200-]{+201+};
limits/api-limits.ts | limits | requests are counted by the minute
  RATE_WINDOW_MS = MINUTE_MS{+ - 1000+};
limits/request-rate.ts | limits | the limit of requests per minute
  window.count <{+=+} limit
limits/daily-rows.ts | every-endpoint | an allowance resets at midnight
  (dayOf(nowMs) + 1) * DAY_MS{+ + 1+}
limits/daily-rows.ts | limits-http | a used-up allowance is refused
  used <{+=+} allowance
appliance.ts | usage | networks are known after a restart
  createSeenKeys([-stored.seen-])
http/connections.ts | connection-limit | a connection that sends nothing makes room
  [-waiting.set(connection, null);-]
http/connections.ts | connection-limit | a connection that ends makes room
  [-if (request.complete) setWaiting(connection, null);-]
`;

export const PLANTED_FAULTS: readonly PlantedFault[] = FAULTS.split(/\n(?=\S)/).flatMap(parse);

/** @returns none for a title */
function parse(text: string): PlantedFault[] {
  const [head = '', ...lines] = text.trimEnd().split('\n');
  const [file = '', test = '', breaks] = head.split(' | ');
  if (breaks === undefined) return [];
  const edit = lines.map((line) => line.slice(2)).join('\n');
  const find = edit.replace(/\{\+.*?\+\}/s, '').replace(/\[-(.*?)-\]/s, '$1');
  const replace = edit.replace(/\[-.*?-\]/s, '').replace(/\{\+(.*?)\+\}/s, '$1');
  return [{ file, find, replace, breaks, test }];
}
