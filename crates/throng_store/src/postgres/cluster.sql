-- The rows of a cluster, and its transactions, each of which is one function: one call is one round trip, so no node that loses its
-- connection leaves rows locked. The crate `throng_cluster` calls them and documents them (`ClusterRequest`). Times are those of the
-- server; `_at_ms` replaces them in tests. Functions return 0 if they did their work, or why nothing was changed:
-- 1 not the owner, 2 the target is late, 3 an older state, 4 the run has ended, 5 not late, 6 the node has a newer run, 7 the node runs.
CREATE TABLE cluster_node (
    node INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    run BIGINT NOT NULL,
    heartbeat_ms BIGINT NOT NULL,
    is_dead BOOLEAN NOT NULL DEFAULT FALSE
);
COMMENT ON COLUMN cluster_node.run IS 'its newest run; only a run owns players';
COMMENT ON COLUMN cluster_node.heartbeat_ms IS 'its last heartbeat, Unix time of the server';
COMMENT ON COLUMN cluster_node.is_dead IS 'the run has ended, or others have claimed its players; it stays dead';
CREATE TABLE cluster_player (
    player BIGINT PRIMARY KEY,
    node INTEGER,
    run BIGINT,
    epoch BIGINT NOT NULL DEFAULT 0,
    is_adopted BOOLEAN NOT NULL DEFAULT FALSE,
    revision BIGINT NOT NULL DEFAULT 0,
    record BYTEA NOT NULL DEFAULT ''
);
COMMENT ON COLUMN cluster_player.player IS 'its id; those from 2^63 on are negative here';
COMMENT ON COLUMN cluster_player.node IS 'the owner, together with its run; NULL: nobody';
COMMENT ON COLUMN cluster_player.epoch IS 'counts the changes of the owner; a write with another one is refused';
COMMENT ON COLUMN cluster_player.is_adopted IS 'the owner has the player in memory';
COMMENT ON COLUMN cluster_player.revision IS 'counts the changes of the record';
CREATE INDEX cluster_player_owner ON cluster_player (node, run) WHERE node IS NOT NULL;
CREATE INDEX cluster_player_arrival ON cluster_player (node, run) WHERE node IS NOT NULL AND NOT is_adopted;

-- Nodes of other versions must agree on this number: a node stops to simulate before it is late.
CREATE FUNCTION cluster_late_after_ms() RETURNS BIGINT LANGUAGE sql IMMUTABLE AS 'SELECT 1500::BIGINT';

CREATE FUNCTION cluster_now_ms(_at_ms BIGINT) RETURNS BIGINT LANGUAGE sql STABLE AS
    'SELECT coalesce(_at_ms, floor(extract(epoch FROM now()) * 1000)::BIGINT)';

CREATE FUNCTION cluster_is_late(_heartbeat_ms BIGINT, _at_ms BIGINT) RETURNS BOOLEAN LANGUAGE sql STABLE AS
    'SELECT cluster_now_ms(_at_ms) - _heartbeat_ms > cluster_late_after_ms()';

CREATE FUNCTION cluster_is_alive(_node INTEGER, _run BIGINT, _at_ms BIGINT) RETURNS BOOLEAN LANGUAGE sql STABLE AS
    'SELECT EXISTS (SELECT FROM cluster_node WHERE node = _node AND run = _run AND NOT is_dead
        AND NOT cluster_is_late(heartbeat_ms, _at_ms))';

-- `_runs` is how many runs a process has room for. Returns 0, the node and the run, or only the reason.
CREATE FUNCTION cluster_start_run(_name TEXT, _runs BIGINT, _at_ms BIGINT, OUT _code INTEGER, OUT _node INTEGER, OUT _run BIGINT)
    LANGUAGE plpgsql AS $$
DECLARE
    _known cluster_node%ROWTYPE;
BEGIN
    -- Processes that start at the same time wait for each other.
    PERFORM pg_advisory_xact_lock(1953002087, hashtext(current_schema() || ' cluster_node'));
    SELECT * INTO _known FROM cluster_node WHERE name = _name FOR UPDATE;
    _code := 0;
    IF NOT FOUND THEN
        SELECT coalesce(max(node) + 1, 0) INTO _node FROM cluster_node;
        _run := _runs;
        INSERT INTO cluster_node (node, name, run, heartbeat_ms) VALUES (_node, _name, _run, cluster_now_ms(_at_ms));
    ELSIF _known.is_dead OR cluster_is_late(_known.heartbeat_ms, _at_ms) THEN
        _node := _known.node;
        _run := (_known.run / _runs + 1) * _runs;
        UPDATE cluster_node SET run = _run, heartbeat_ms = cluster_now_ms(_at_ms), is_dead = FALSE WHERE node = _node;
    ELSE
        _code := 7;
    END IF;
END $$;

CREATE FUNCTION cluster_end_run(_node INTEGER, _run BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cluster_node SET is_dead = TRUE WHERE node = _node AND run = _run AND NOT is_dead;
    RETURN CASE WHEN FOUND THEN 0 ELSE 4 END;
END $$;

CREATE FUNCTION cluster_heartbeat(_node INTEGER, _run BIGINT, _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cluster_node SET run = _run, heartbeat_ms = cluster_now_ms(_at_ms), is_dead = FALSE
        WHERE node = _node AND (run < _run OR (run = _run AND NOT is_dead));
    IF FOUND THEN
        RETURN 0;
    END IF;
    PERFORM FROM cluster_node WHERE node = _node AND run > _run;
    RETURN CASE WHEN FOUND THEN 6 ELSE 4 END;
END $$;

-- Makes a run the owner, which has to adopt the player. The caller has locked the row.
CREATE FUNCTION cluster_give(_player BIGINT, _node INTEGER, _run BIGINT) RETURNS VOID LANGUAGE sql AS
    'UPDATE cluster_player SET node = _node, run = _run, epoch = epoch + 1, is_adopted = FALSE WHERE player = _player';

CREATE FUNCTION cluster_save(_node INTEGER, _run BIGINT, _players BIGINT[], _epochs BIGINT[], _revisions BIGINT[], _records BYTEA[])
    RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _code INTEGER;
BEGIN
    -- In one order, so that transactions that wait for each other do not deadlock.
    PERFORM FROM cluster_player WHERE player = ANY(_players) ORDER BY player < 0, player FOR UPDATE;
    SELECT CASE WHEN own.player IS NULL OR own.epoch <> new.epoch THEN 1 ELSE 3 END INTO _code
        FROM unnest(_players, _epochs, _revisions) WITH ORDINALITY AS new (player, epoch, revision, place)
        LEFT JOIN cluster_player AS own ON own.player = new.player AND own.node = _node AND own.run = _run
        WHERE own.player IS NULL OR own.epoch <> new.epoch OR new.revision < own.revision
        ORDER BY place LIMIT 1;
    IF FOUND THEN
        RETURN _code;
    END IF;
    UPDATE cluster_player SET revision = new.revision, record = new.record
        FROM unnest(_players, _revisions, _records) AS new (player, revision, record)
        WHERE cluster_player.player = new.player;
    RETURN 0;
END $$;

-- Saves, and gives the last of these players to another run.
CREATE FUNCTION cluster_hand_off(_node INTEGER, _run BIGINT, _players BIGINT[], _epochs BIGINT[], _revisions BIGINT[], _records BYTEA[],
    _to_node INTEGER, _to_run BIGINT, _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _code INTEGER;
BEGIN
    IF NOT cluster_is_alive(_to_node, _to_run, _at_ms) THEN
        RETURN 2;
    END IF;
    _code := cluster_save(_node, _run, _players, _epochs, _revisions, _records);
    IF _code = 0 THEN
        PERFORM cluster_give(_players[cardinality(_players)], _to_node, _to_run);
    END IF;
    RETURN _code;
END $$;

-- Saves, and ends the ownership of the last of these players.
CREATE FUNCTION cluster_release(_node INTEGER, _run BIGINT, _players BIGINT[], _epochs BIGINT[], _revisions BIGINT[], _records BYTEA[])
    RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _code INTEGER := cluster_save(_node, _run, _players, _epochs, _revisions, _records);
BEGIN
    IF _code = 0 THEN
        PERFORM cluster_give(_players[cardinality(_players)], NULL, NULL);
    END IF;
    RETURN _code;
END $$;

CREATE FUNCTION cluster_raise_epoch(_node INTEGER, _run BIGINT, _player BIGINT, _epoch BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cluster_player SET epoch = epoch + 1 WHERE player = _player AND node = _node AND run = _run AND epoch = _epoch;
    RETURN CASE WHEN FOUND THEN 0 ELSE 1 END;
END $$;

-- Returns the players that the run owns with these epochs, in the order of the request.
CREATE FUNCTION cluster_adopt(_node INTEGER, _run BIGINT, _players BIGINT[], _epochs BIGINT[])
    RETURNS TABLE (_player BIGINT, _epoch BIGINT, _revision BIGINT, _record BYTEA) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM cluster_player WHERE player = ANY(_players) ORDER BY player < 0, player FOR UPDATE;
    RETURN QUERY WITH adopted AS (
        UPDATE cluster_player AS own SET is_adopted = TRUE
            FROM unnest(_players, _epochs) WITH ORDINALITY AS new (player, epoch, place)
            WHERE own.player = new.player AND own.node = _node AND own.run = _run AND own.epoch = new.epoch
            RETURNING new.place, own.player, own.epoch, own.revision, own.record
    )
    SELECT player, epoch, revision, record FROM adopted ORDER BY place;
END $$;

CREATE FUNCTION cluster_take_back(_node INTEGER, _run BIGINT, _player BIGINT, _epoch BIGINT, _at_ms BIGINT)
    RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _row cluster_player%ROWTYPE;
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 4;
    END IF;
    SELECT * INTO _row FROM cluster_player WHERE player = _player FOR UPDATE;
    IF NOT FOUND OR _row.node IS NULL OR _row.epoch <> _epoch THEN
        RETURN 1;
    END IF;
    IF _row.is_adopted OR cluster_is_alive(_row.node, _row.run, _at_ms) THEN
        RETURN 5;
    END IF;
    PERFORM cluster_give(_player, _node, _run);
    RETURN 0;
END $$;

CREATE FUNCTION cluster_claim_late(_node INTEGER, _run BIGINT, _players_max BIGINT, _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _late RECORD;
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 4;
    END IF;
    -- Heartbeats of these nodes are refused from now on. A locked row is skipped: its heartbeat, or another claim, is under way.
    WITH late AS (
        SELECT node FROM cluster_node WHERE NOT is_dead AND cluster_is_late(heartbeat_ms, _at_ms) ORDER BY node FOR UPDATE SKIP LOCKED
    )
    UPDATE cluster_node SET is_dead = TRUE FROM late WHERE cluster_node.node = late.node;
    -- Only players of runs that are marked as dead, or are not the newest: the time alone does not count, because a heartbeat may be
    -- under way. Runs that own players are found one after the other in the index, without reading all players.
    FOR _late IN
        WITH RECURSIVE owner AS (
            (SELECT node, run FROM cluster_player WHERE node IS NOT NULL ORDER BY node, run LIMIT 1)
            UNION ALL
            SELECT next.node, next.run FROM owner, LATERAL (
                SELECT node, run FROM cluster_player
                WHERE node IS NOT NULL AND (node, run) > (owner.node, owner.run) ORDER BY node, run LIMIT 1
            ) AS next
        )
        SELECT own.player, own.epoch FROM owner JOIN cluster_player AS own ON own.node = owner.node AND own.run = owner.run
            WHERE NOT EXISTS (SELECT FROM cluster_node AS alive
                WHERE alive.node = owner.node AND alive.run = owner.run AND NOT alive.is_dead)
            ORDER BY own.player < 0, own.player LIMIT _players_max
    LOOP
        PERFORM FROM cluster_player WHERE player = _late.player AND epoch = _late.epoch FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            PERFORM cluster_give(_late.player, _node, _run);
        END IF;
    END LOOP;
    RETURN 0;
END $$;

CREATE FUNCTION cluster_log_in(_node INTEGER, _run BIGINT, _player BIGINT, _epoch BIGINT, _at_ms BIGINT)
    RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 4;
    END IF;
    IF _epoch = 0 THEN
        INSERT INTO cluster_player (player) VALUES (_player) ON CONFLICT DO NOTHING;
    END IF;
    PERFORM FROM cluster_player WHERE player = _player AND node IS NULL AND epoch = _epoch FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 1;
    END IF;
    PERFORM cluster_give(_player, _node, _run);
    RETURN 0;
END $$;
