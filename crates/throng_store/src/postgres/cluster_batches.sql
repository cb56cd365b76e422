-- Requests about many players at once; which nodes are steady; players go home to the node that runs their scene.

DROP FUNCTION cluster_hand_off(INTEGER, BIGINT, BIGINT[], BIGINT[], BIGINT[], BYTEA[], INTEGER, BIGINT, BIGINT);
-- Saves, and gives the last `_given` of these players to another run.
CREATE FUNCTION cluster_hand_off(_node INTEGER, _run BIGINT, _players BIGINT[], _epochs BIGINT[], _revisions BIGINT[], _records BYTEA[],
    _given BIGINT, _to_node INTEGER, _to_run BIGINT, _at_ms BIGINT) RETURNS INTEGER LANGUAGE plpgsql AS $$
DECLARE
    _code INTEGER;
BEGIN
    IF NOT cluster_is_alive(_to_node, _to_run, _at_ms) THEN
        RETURN 2;
    END IF;
    _code := cluster_save(_node, _run, _players, _epochs, _revisions, _records);
    IF _code = 0 THEN
        PERFORM cluster_give(player, _to_node, _to_run) FROM unnest(_players[cardinality(_players) - _given + 1 :]) AS player;
    END IF;
    RETURN _code;
END $$;

DROP FUNCTION cluster_claim_late(INTEGER, BIGINT, BIGINT, BIGINT);
-- Claims players of dead nodes, and returns them with their epochs.
CREATE FUNCTION cluster_claim_players(_node INTEGER, _run BIGINT, _players_max BIGINT, _at_ms BIGINT, OUT _code INTEGER,
    OUT _players BIGINT[], OUT _epochs BIGINT[]) LANGUAGE plpgsql AS $$
DECLARE
    _late RECORD;
BEGIN
    _players := '{}';
    _epochs := '{}';
    IF NOT cluster_is_alive(_node, _run, _at_ms) THEN
        _code := 4;
        RETURN;
    END IF;
    PERFORM cluster_declare_dead(_node, NULL, _at_ms);
    -- Only players of runs that are marked as dead or are not the newest. A late heartbeat alone is not enough: it may be in progress. Runs
    -- that own players are found one after the other in the index, without reading all players.
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
            _players := _players || _late.player;
            _epochs := _epochs || (_late.epoch + 1);
        END IF;
    END LOOP;
    _code := 0;
END $$;

-- Whether a node is alive, and its heartbeats have been in time for long enough.
CREATE FUNCTION cluster_is_steady(_node INTEGER, _at_ms BIGINT) RETURNS BOOLEAN LANGUAGE sql STABLE AS
    'SELECT NOT is_dead AND NOT cluster_is_late(heartbeat_ms, _at_ms) AND cluster_now_ms(_at_ms) - steady_since_ms > cluster_steady_after_ms()
        FROM cluster_node WHERE node = _node';

-- As before, with `_is_steady`.
DROP FUNCTION cluster_read_scenes(BIGINT);
CREATE FUNCTION cluster_read_scenes(_at_ms BIGINT) RETURNS TABLE (_epoch BIGINT, _name TEXT, _node INTEGER, _run BIGINT, _is_alive BOOLEAN,
    _load BIGINT, _is_draining BOOLEAN, _specification BYTEA, _pinned_to TEXT, _is_steady BOOLEAN) LANGUAGE sql STABLE AS $$
    SELECT entry.epoch, entry.name, entry.node, entry.run, is_alive, load, is_draining, specification, pinned_to, is_steady FROM (
        SELECT NULL::BIGINT AS epoch, name, node, run, NOT is_dead AND NOT cluster_is_late(heartbeat_ms, _at_ms) AS is_alive, load,
            is_draining, NULL::BYTEA AS specification, NULL::TEXT AS pinned_to, cluster_is_steady(node, _at_ms) AS is_steady, node AS place
            FROM cluster_node
        UNION ALL
        SELECT epoch, name, node, run, NULL, NULL, NULL, specification, pinned_to, NULL, NULL FROM cluster_scene
    ) AS entry ORDER BY place NULLS LAST, entry.name COLLATE "C"
$$;

-- As before, but a player goes home to the node that runs its scene, if there is one, and else to the node of its ticket.
CREATE OR REPLACE FUNCTION cluster_travels(_node INTEGER, _run BIGINT, _at_ms BIGINT)
    RETURNS TABLE (_player BIGINT, _match_epoch BIGINT, _match_nth BIGINT, _home_node INTEGER, _home_scene TEXT, _to_node INTEGER,
        _to_run BIGINT) LANGUAGE sql STABLE AS $$
    SELECT member.player, member.match_epoch, member.match_nth, member.home_node, member.home_scene,
        coalesce(host.node, home.node), coalesce(host.run, home.run)
    FROM cluster_match_player AS member
    JOIN cluster_player AS own ON own.player = member.player AND own.node = _node AND own.run = _run AND own.is_adopted
    LEFT JOIN cluster_match AS played ON played.epoch = member.match_epoch AND played.nth = member.match_nth
    LEFT JOIN cluster_match AS host
        ON host.epoch = played.epoch AND host.nth = played.nth AND (host.node, host.run) <> (_node, _run)
    LEFT JOIN cluster_scene AS place ON member.match_epoch IS NULL AND place.name = member.home_scene
        AND cluster_is_alive(place.node, place.run, _at_ms)
    LEFT JOIN cluster_node AS home ON member.match_epoch IS NULL AND home.node = coalesce(place.node, member.home_node)
        AND home.node <> _node AND NOT home.is_dead AND NOT cluster_is_late(home.heartbeat_ms, _at_ms)
    WHERE member.is_travelling AND (member.match_epoch IS NULL OR played.state = 1)
$$;
