-- The same functions with less work per call. Functions in plpgsql keep their plans; those in SQL that are not inlined are planned in each call.
-- `IS NOT DISTINCT FROM` uses no index: where players are known, their rows are found by their key, not among all rows of their owner.

CREATE OR REPLACE FUNCTION cluster_is_alive(_node INTEGER, _run BIGINT, _at_ms BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM cluster_node WHERE node = _node AND run = _run AND NOT is_dead AND NOT cluster_is_late(heartbeat_ms, _at_ms));
END $$;

CREATE OR REPLACE FUNCTION cluster_is_steady(_node INTEGER, _at_ms BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT NOT is_dead AND NOT cluster_is_late(heartbeat_ms, _at_ms) AND cluster_now_ms(_at_ms) - steady_since_ms > cluster_steady_after_ms()
        FROM cluster_node WHERE node = _node);
END $$;

CREATE OR REPLACE FUNCTION cluster_give(_player BIGINT, _node INTEGER, _run BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    UPDATE cluster_player SET given_by = node, given_ms = cluster_now_ms(NULL), node = _node, run = _run, epoch = epoch + 1, is_adopted = FALSE
        WHERE player = _player;
END $$;

-- Locks the rows of these players, and returns 0 if the run may save all of them, or why not.
CREATE FUNCTION cluster_lock_saves(_node INTEGER, _run BIGINT, _players BIGINT[], _epochs BIGINT[], _revisions BIGINT[])
    RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _code INTEGER;
BEGIN
    -- In one order, so that transactions that wait for each other do not deadlock.
    PERFORM FROM cluster_player WHERE player = ANY(_players) ORDER BY player < 0, player FOR UPDATE;
    SELECT CASE WHEN own.player IS NULL OR own.epoch <> new.epoch THEN 1 ELSE 3 END INTO _code
        FROM unnest(_players, _epochs, _revisions) WITH ORDINALITY AS new (player, epoch, revision, place)
        LEFT JOIN cluster_player AS own ON own.player = new.player AND (own.node, own.run) IS NOT DISTINCT FROM (_node, _run)
        WHERE own.player IS NULL OR own.epoch <> new.epoch OR new.revision < own.revision
        ORDER BY place LIMIT 1;
    RETURN CASE WHEN FOUND THEN _code ELSE 0 END;
END $$;

CREATE OR REPLACE FUNCTION cluster_save(_node INTEGER, _run BIGINT, _players BIGINT[], _epochs BIGINT[], _revisions BIGINT[], _records BYTEA[])
    RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _code INTEGER := cluster_lock_saves(_node, _run, _players, _epochs, _revisions);
BEGIN
    IF _code = 0 THEN
        UPDATE cluster_player AS own SET revision = new.revision, record = new.record
            FROM unnest(_players, _revisions, _records) AS new (player, revision, record) WHERE own.player = new.player;
    END IF;
    RETURN _code;
END $$;

-- As before, but each row is written once.
CREATE OR REPLACE FUNCTION cluster_hand_off(_node INTEGER, _run BIGINT, _players BIGINT[], _epochs BIGINT[], _revisions BIGINT[],
    _records BYTEA[], _given BIGINT, _to_node INTEGER, _to_run BIGINT, _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _code INTEGER;
    _kept BIGINT := cardinality(_players) - _given;
BEGIN
    IF NOT cluster_is_alive(_to_node, _to_run, _at_ms) THEN
        RETURN 2;
    END IF;
    _code := cluster_lock_saves(_node, _run, _players, _epochs, _revisions);
    IF _code = 0 THEN
        UPDATE cluster_player AS own SET revision = new.revision, record = new.record, given_by = _node, given_ms = cluster_now_ms(NULL),
            node = _to_node, run = _to_run, epoch = own.epoch + 1, is_adopted = FALSE
            FROM unnest(_players[_kept + 1 :], _revisions[_kept + 1 :], _records[_kept + 1 :]) AS new (player, revision, record)
            WHERE own.player = new.player;
        IF _kept > 0 THEN
            UPDATE cluster_player AS own SET revision = new.revision, record = new.record
                FROM unnest(_players[: _kept], _revisions[: _kept], _records[: _kept]) AS new (player, revision, record)
                WHERE own.player = new.player;
        END IF;
    END IF;
    RETURN _code;
END $$;

CREATE OR REPLACE FUNCTION cluster_adopt(_node INTEGER, _run BIGINT, _players BIGINT[], _epochs BIGINT[])
    RETURNS TABLE (_player BIGINT, _epoch BIGINT, _revision BIGINT, _record BYTEA) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM cluster_player WHERE player = ANY(_players) ORDER BY player < 0, player FOR UPDATE;
    RETURN QUERY WITH adopted AS (
        UPDATE cluster_player AS own SET is_adopted = TRUE
            FROM unnest(_players, _epochs) WITH ORDINALITY AS new (player, epoch, place)
            WHERE own.player = new.player AND own.epoch = new.epoch AND (own.node, own.run) IS NOT DISTINCT FROM (_node, _run)
            RETURNING new.place, own.player, own.epoch, own.revision, own.record
    )
    SELECT player, epoch, revision, record FROM adopted ORDER BY place;
END $$;

-- As before, but runs that are alive are left out before their players are read, and operators see from which node a claimed player comes.
CREATE OR REPLACE FUNCTION cluster_claim_players(_node INTEGER, _run BIGINT, _players_max BIGINT, _unheard_nodes INTEGER[], _unheard_runs BIGINT[],
    _unheard_heartbeats BIGINT[], _at_ms BIGINT, OUT _code INTEGER, OUT _players BIGINT[], OUT _epochs BIGINT[], OUT _quiet_nodes INTEGER[],
    OUT _quiet_runs BIGINT[], OUT _quiet_heartbeats BIGINT[]) LANGUAGE plpgsql AS $$
BEGIN
    _players := '{}';
    _epochs := '{}';
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        _code := 4;
        RETURN;
    END IF;
    PERFORM cluster_declare_dead(_node, NULL, _at_ms);
    IF cardinality(_unheard_nodes) > 0 THEN
        PERFORM cluster_declare_unheard_dead(_node, _unheard_nodes, _unheard_runs, _unheard_heartbeats, _at_ms);
    END IF;
    -- Only players of runs that are marked as dead or are not the newest. A late heartbeat alone is not enough: it may be in progress. Runs
    -- that own players are found one after the other in the index, without reading all players. Players that another node claims at the same
    -- time are skipped.
    WITH RECURSIVE owner AS (
        (SELECT node, run FROM cluster_player WHERE node IS NOT NULL ORDER BY node, run LIMIT 1)
        UNION ALL
        SELECT next.node, next.run FROM owner, LATERAL (
            SELECT node, run FROM cluster_player
            WHERE node IS NOT NULL AND (node, run) > (owner.node, owner.run) ORDER BY node, run LIMIT 1
        ) AS next
    ), dead AS MATERIALIZED (
        SELECT node, run FROM owner WHERE NOT EXISTS (SELECT FROM cluster_node AS alive
            WHERE alive.node = owner.node AND alive.run = owner.run AND NOT alive.is_dead)
    ), late AS (
        SELECT own.player FROM dead JOIN cluster_player AS own ON own.node = dead.node AND own.run = dead.run
            ORDER BY own.player < 0, own.player LIMIT _players_max FOR UPDATE OF own SKIP LOCKED
    ), given AS (
        UPDATE cluster_player AS own SET given_by = own.node, given_ms = cluster_now_ms(NULL), node = _node, run = _run,
            epoch = own.epoch + 1, is_adopted = FALSE
            FROM late WHERE own.player = late.player RETURNING own.player, own.epoch
    )
    SELECT coalesce(array_agg(player ORDER BY player < 0, player), '{}'), coalesce(array_agg(epoch ORDER BY player < 0, player), '{}')
        INTO _players, _epochs FROM given;
    SELECT coalesce(array_agg(node ORDER BY node), '{}'), coalesce(array_agg(run ORDER BY node), '{}'),
            coalesce(array_agg(heartbeat_ms ORDER BY node), '{}')
        INTO _quiet_nodes, _quiet_runs, _quiet_heartbeats
        FROM cluster_node WHERE node <> _node AND NOT is_dead AND cluster_now_ms(_at_ms) - heartbeat_ms > cluster_quiet_after_ms();
    _code := 0;
END $$;

-- As before, but it begins with the players that travel, which are few, instead of all players of the run. `LIMIT` keeps this order.
CREATE OR REPLACE FUNCTION cluster_travels(_node INTEGER, _run BIGINT, _at_ms BIGINT)
    RETURNS TABLE (_player BIGINT, _match_epoch BIGINT, _match_nth BIGINT, _home_node INTEGER, _home_scene TEXT, _to_node INTEGER,
        _to_run BIGINT) LANGUAGE sql STABLE AS $$
    SELECT member.player, member.match_epoch, member.match_nth, member.home_node, member.home_scene,
        coalesce(host.node, home.node), coalesce(host.run, home.run)
    FROM cluster_match_player AS member
    CROSS JOIN LATERAL (SELECT FROM cluster_player AS held WHERE held.player = member.player AND held.is_adopted
        AND (held.node, held.run) IS NOT DISTINCT FROM (_node, _run) LIMIT 1) AS own
    LEFT JOIN cluster_match AS played ON played.epoch = member.match_epoch AND played.nth = member.match_nth
    LEFT JOIN cluster_match AS host
        ON host.epoch = played.epoch AND host.nth = played.nth AND (host.node, host.run) <> (_node, _run)
    LEFT JOIN cluster_scene AS place ON member.match_epoch IS NULL AND place.name = member.home_scene
        AND cluster_is_alive(place.node, place.run, _at_ms)
    LEFT JOIN cluster_node AS home ON member.match_epoch IS NULL AND home.node = coalesce(place.node, member.home_node)
        AND home.node <> _node AND NOT home.is_dead AND NOT cluster_is_late(home.heartbeat_ms, _at_ms)
    WHERE member.is_travelling AND (member.match_epoch IS NULL OR played.state = 1)
$$;

CREATE OR REPLACE FUNCTION cluster_rejoin(_node INTEGER, _run BIGINT, _players BIGINT[], _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
BEGIN
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        RETURN 1;
    END IF;
    -- Most players are in no match.
    _players := ARRAY(SELECT player FROM cluster_match_player WHERE player = ANY(_players) AND match_epoch IS NOT NULL
        ORDER BY player < 0, player FOR UPDATE);
    UPDATE cluster_match_player AS member SET is_travelling = TRUE FROM cluster_match AS played, cluster_player AS own
        WHERE member.player = ANY(_players) AND played.epoch = member.match_epoch AND played.nth = member.match_nth
            AND played.state = 1 AND (played.node, played.run) <> (_node, _run)
            AND own.player = member.player AND own.is_adopted AND (own.node, own.run) IS NOT DISTINCT FROM (_node, _run);
    RETURN 0;
END $$;

-- As before, but nothing else is read if no group has changed. It is `STABLE`, so that all its reads see the same state.
CREATE OR REPLACE FUNCTION cluster_read_changed_groups(_node INTEGER, _run BIGINT, _after BIGINT, _changes_max BIGINT, OUT _players BIGINT[],
    OUT _revision BIGINT) LANGUAGE plpgsql STABLE AS $$
DECLARE
    _last BIGINT;
BEGIN
    SELECT revision INTO _last FROM cluster_group_counter;
    _after := coalesce(_after, _last);
    _revision := least(_last, _after + _changes_max);
    _players := '{}';
    IF _revision > _after THEN
        _players := ARRAY(
            SELECT changed.player FROM (
                SELECT player FROM cluster_group_player WHERE revision > _after AND revision <= _revision
                UNION
                SELECT member.player FROM cluster_group AS own
                    JOIN cluster_group_player AS member ON member.kind = own.kind AND member.id = own.id
                    WHERE own.revision > _after AND own.revision <= _revision
            ) AS changed JOIN cluster_player AS held ON held.player = changed.player
            WHERE (held.node, held.run) IS NOT DISTINCT FROM (_node, _run) ORDER BY changed.player < 0, changed.player);
    END IF;
END $$;
