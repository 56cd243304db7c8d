/** Examples of programs that write exports and read the stream: what the manual prints, and what tests run. */

export const SHELL_WRITER = `
drop=wirewatch-data/drop
name=newswire.20261120T1010Z.ndjson.gz
{
  echo '{"subscription_id":7001,"source_internal_id":9001,"article_id":501,"first_detected_at":"2026-11-20T10:12:00Z","last_scored_at":"2026-11-20T10:12:30Z","strength_score":62.5,"article_url":"https://www.example.com/news/501"}'
  echo '{"end_of_export":true,"rows":1}'
} | gzip > "$drop/.$name" &&
mv "$drop/.$name" "$drop/$name"
`;

export const PYTHON_WRITER = `
import gzip, json, os
from datetime import datetime, timedelta, timezone

def write_window(drop, export, start, rows):
    """Writes one window under a name that is left alone, then renames it."""
    name = f"{export}.{start:%Y%m%dT%H%MZ}.ndjson.gz"
    draft = os.path.join(drop, "." + name)
    with gzip.open(draft, "wt", encoding="utf-8", newline="\\n") as out:
        for row in rows:
            out.write(json.dumps(row) + "\\n")
        out.write(json.dumps({"end_of_export": True, "rows": len(rows)}) + "\\n")
    os.replace(draft, os.path.join(drop, name))

now = datetime.now(timezone.utc)
start = now.replace(minute=now.minute // 10 * 10, second=0, microsecond=0) - timedelta(minutes=10)
write_window("wirewatch-data/drop", "imagewire", start, [{
    "subscription_id": 7001,
    "source_internal_id": 9002,
    "article_id": 502,
    "first_detected_at": start.isoformat(),
    "last_scored_at": (start + timedelta(minutes=3)).isoformat(),
    "strength_score": 71,
    "source_id": "urn:newsml:agency.example:photo-9002",
    "article_url": "https://www.example.com/news/502",
    "article_publisher_id": 19,
    "article_publisher_name": "Example News",
}])
`;

export const CSV_WRITER = `
cat > wirewatch-data/drop/newswire.20261120T1020Z.csv.part <<'END' &&
subscription_id,source_internal_id,article_id,first_detected_at,last_scored_at,strength_score,article_headline,article_print
7001,9001,503,2026-11-20T10:21:00Z,2026-11-20T10:21:30Z,48,"Mills, and what ""mill"" means",false
END
mv wirewatch-data/drop/newswire.20261120T1020Z.csv.part wirewatch-data/drop/newswire.20261120T1020Z.csv
`;

export const PYTHON_CLIENT = `
import http.client, json, os, sqlite3, time, urllib.error, urllib.parse, urllib.request

BASE = os.environ.get("BASE_URL", "http://127.0.0.1:8080")
KEY = os.environ["KEY"]
SINCE = os.environ["SINCE"]  # only for the very first call, such as 2026-11-21T10:00:00Z

db = sqlite3.connect("detections.sqlite")
db.execute("CREATE TABLE IF NOT EXISTS detection (id TEXT PRIMARY KEY, version INTEGER, body TEXT)")
db.execute("CREATE TABLE IF NOT EXISTS state (one INTEGER PRIMARY KEY CHECK (one = 1), cursor TEXT)")

def call(query):
    url = BASE + "/v1/detections/changes?" + urllib.parse.urlencode(query)
    request = urllib.request.Request(url, headers={"Authorization": "Bearer " + KEY})
    wait = 1
    while True:
        pause = wait
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 500, 502, 503, 504):
                raise SystemExit(error.read().decode())
            after = error.headers.get("Retry-After", "")  # a proxy may send a date
            pause = int(after) if after.isdigit() else wait
        except (OSError, http.client.HTTPException, ValueError):
            pass  # no answer, or only a part of one
        time.sleep(pause)
        wait = min(wait * 2, 300)

more = True
while more:  # caught up: run it again later, hourly for example
    known = db.execute("SELECT cursor FROM state").fetchone()
    start = {"cursor": known[0]} if known else {"since": SINCE}
    page = call({"limit": 1000, **start})
    with db:  # rows and cursor in one transaction
        for detection in page["data"]:
            db.execute(
                "INSERT INTO detection VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE"
                " SET version = excluded.version, body = excluded.body WHERE excluded.version > version",
                (detection["id"], detection["version"], json.dumps(detection)))
        db.execute("INSERT OR REPLACE INTO state VALUES (1, ?)", (page["next_cursor"],))
    more = page["has_more"]
print(db.execute("SELECT count(*) FROM detection").fetchone()[0], "detections")
`;
